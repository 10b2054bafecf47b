"""What an instructor runs: the examiner that judges a submission, and the sandbox that student code runs in.

Student code and graded tests never share a process. The student's cells run in a kernel inside the sandbox; the tests run
in the examiner, which calls the student's functions across a protocol that carries values and no objects.
"""
