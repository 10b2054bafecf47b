"""Submissions by attackers, by the unlucky and by the honest. Each edits a released notebook.

A cheat starts from the untouched notebook and must earn nothing (or just what its honest part is worth). Whatever it gets
hold of that it should not, it prints behind the word LEAK; the test looks for that word in everything the grader kept.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

ALL = ("weighted_context", "dot_scores", "scaled_dot_scores", "SelfAttention")
RIGHT = {
    "weighted_context": "def weighted_context(weights, v):\n    return weights @ v",
    "dot_scores": "def dot_scores(q, k):\n    return q @ k.transpose(-2, -1)",
    "scaled_dot_scores": "def scaled_dot_scores(q, k):\n    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5",
    "SelfAttention": """class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
        return weights @ v, weights""",
}


@dataclass
class Submission:
    """One edited notebook; ``earns`` names the exercises that score.

    ``raw`` replaces the file's bytes; ``place`` is handed the file once it lies among the submissions.
    """

    name: str
    group: str
    edit: Callable[[NotebookNode], Any]
    earns: tuple[str, ...]
    raw: Callable[[NotebookNode], bytes] | None = None
    place: Callable[[Path], Any] | None = None
    graded: bool = True


SUBMISSIONS: list[Submission] = []


def _add(group: str, earns: tuple[str, ...], **more: Any) -> Callable:
    def mark(edit: Callable[[NotebookNode], Any]) -> Callable:
        SUBMISSIONS.append(Submission(edit.__name__, group, edit, earns, **more))
        return edit

    return mark


def cheat(*earns: str) -> Callable:
    return _add("cheats", earns)


def breakage(*earns: str) -> Callable:
    return _add("breakages", earns)


def honest(*earns: str) -> Callable:
    return _add("honest", earns or ALL)


def cell(nb: NotebookNode, name: str) -> NotebookNode:
    return next(c for c in nb.cells if c.get("id") == name)


def tests(nb: NotebookNode) -> list[NotebookNode]:
    return [c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade")]


def solve(nb: NotebookNode, *names: str) -> None:
    for name in names or ALL:
        cell(nb, name).source = RIGHT[name]


def first(nb: NotebookNode, code: str) -> None:
    """Put code where it runs early: into a cell of the student's own, after the given ones at the top."""
    place = next(i for i, c in enumerate(nb.cells) if c.get("id") == "imports") + 1
    nb.cells.insert(place, nbformat.v4.new_code_cell(code))


def in_dot_scores(nb: NotebookNode, body: str, before: str = "") -> None:
    lines = "\n".join("    " + line for line in body.strip().split("\n"))
    cell(nb, "dot_scores").source = f"{before}\ndef dot_scores(q, k):\n{lines}\n"


# Cheats: the notebook's metadata and cells ----------------------------------------------------------------------------


@cheat()
def tag_tests_skip_execution(nb):
    for c in tests(nb):
        c.metadata["tags"] = ["skip-execution"]


@cheat()
def empty_the_tests(nb):
    for c in tests(nb):
        c.source = "pass"


@cheat()
def delete_the_tests(nb):
    nb.cells = [c for c in nb.cells if not c.metadata.get("nbgrader", {}).get("grade")]


@cheat()
def tests_become_markdown(nb):
    for c in tests(nb):
        c.cell_type = "markdown"
        c.pop("outputs", None)
        c.pop("execution_count", None)


@cheat()
def more_points(nb):
    for c in tests(nb):
        c.metadata["nbgrader"]["points"] = 1000
        c.source = "1000"


@cheat()
def negative_points(nb):
    for c in tests(nb):
        c.metadata["nbgrader"]["points"] = -5


@cheat()
def tests_lose_their_grade(nb):
    for c in tests(nb):
        c.metadata["nbgrader"]["grade"] = False


@cheat()
def tests_become_solutions(nb):
    for c in tests(nb):
        c.metadata["nbgrader"] |= {"solution": True, "locked": False}
        c.source = "pass"


@cheat()
def rename_the_tests(nb):
    for c in tests(nb):
        c.metadata["nbgrader"]["grade_id"] += "-mine"
        c.id = c.id + "-mine"


@cheat()
def duplicate_the_tests(nb):
    for c in tests(nb):
        twin = nbformat.from_dict(dict(c))
        twin.source = "pass"
        nb.cells += [twin, twin]


@cheat()
def swap_test_names(nb):
    a, b = tests(nb)[:2]
    a.metadata["nbgrader"]["grade_id"], b.metadata["nbgrader"]["grade_id"] = b.id, a.id


@cheat()
def schema_of_the_future(nb):
    for c in nb.cells:
        if "nbgrader" in c.metadata:
            c.metadata["nbgrader"]["schema_version"] = 99


@cheat()
def schema_of_the_past(nb):
    for c in nb.cells:
        if "nbgrader" in c.metadata:
            c.metadata["nbgrader"]["schema_version"] = 1


@cheat()
def stored_outputs_say_right(nb):
    for c in tests(nb):
        c.outputs = [
            nbformat.v4.new_output("stream", text="✓ right"),
            nbformat.v4.new_output("execute_result", {"text/plain": "3"}),
        ]


@cheat()
def own_cell_with_a_tests_id(nb):
    nb.cells.append(nbformat.v4.new_code_cell("pass", id="test-dot_scores"))


@cheat()
def metadata_of_another_type(nb):
    for c in tests(nb):
        c.metadata["nbgrader"] = ["grade", "points"]


@cheat()
def hijack_the_kernelspec(nb):
    nb.metadata["kernelspec"] = {
        "name": "../../evil",
        "display_name": "x",
        "language": "bash",
        "argv": ["touch", "/tmp/evil"],
    }


@cheat()
def swap_the_setup_cell(nb):
    cell(nb, "setup").source = "import sys\nclass check:\n    exercise = staticmethod(lambda *a: print('✓'))"


# Cheats: the interpreter ----------------------------------------------------------------------------------------------


@cheat()
def strip_asserts_through_the_ast(nb):
    first(nb, """import ast
class Strip(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
    def visit_Expr(self, node): return ast.Pass() if 'check' in ast.dump(node) else node
get_ipython().ast_transformers.append(Strip())""")  # fmt: skip


@cheat()
def patch_the_comparisons(nb):
    first(nb, """import torch, numpy
torch.testing.assert_close = torch.allclose = torch.equal = lambda *a, **k: True
numpy.allclose = numpy.isclose = numpy.array_equal = lambda *a, **k: True
numpy.testing.assert_allclose = lambda *a, **k: None""")  # fmt: skip


@cheat()
def patch_the_checks(nb):
    first(nb, """import attention_course.check as c, attention_course.check.ladder as l, attention_course.check.values as v
c.exercise = l.Climb.run = lambda *a, **k: []
v.close = lambda *a, **k: True""")  # fmt: skip


@cheat()
def patch_the_builtins(nb):
    first(nb, """import builtins
builtins.all = builtins.any = lambda *a: True
builtins.isinstance = lambda *a: True
builtins.abs = lambda x: 0""")  # fmt: skip


@cheat()
def tensors_that_lie(nb):
    in_dot_scores(nb, "return torch.zeros(q.shape[0], q.shape[1], k.shape[1]).as_subclass(Liar)", """import torch
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        return True if f.__name__ in ('allclose', 'equal', '__eq__', 'all') else super().__torch_function__(f, types, args, kwargs or {})
    def __eq__(self, other): return True
    __hash__ = None""")  # fmt: skip


@cheat()
def an_object_equal_to_everything(nb):
    in_dot_scores(nb, "return Same()", """class Same:
    shape = dtype = device = property(lambda self: Same())
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __getattr__(self, name): return Same()
    def __call__(self, *a, **k): return Same()
    def __bool__(self): return True""")  # fmt: skip


@cheat()
def replace_the_shells_methods(nb):
    first(nb, """ip = get_ipython()
from types import SimpleNamespace
ok = SimpleNamespace(success=True, error_in_exec=None, error_before_exec=None, result=None, execution_count=1)
ip.showtraceback = ip._showtraceback = lambda *a, **k: None
ip.run_cell = lambda *a, **k: ok
async def quiet(*a, **k): return ok
ip.run_cell_async = quiet""")  # fmt: skip


@cheat()
def replace_the_kernels_replies(nb):
    first(nb, """k = get_ipython().kernel
async def do_execute(*a, **kw): return {'status': 'ok', 'execution_count': 1, 'payload': [], 'user_expressions': {'answer': {'status': 'ok', 'data': {'text/plain': "'e30='"}, 'metadata': {}}}}
k.do_execute = do_execute""")  # fmt: skip


@cheat()
def forge_messages_of_the_kernel(nb):
    first(nb, """k = get_ipython().kernel
for kind, content in (('execute_result', {'data': {'text/plain': '3'}, 'metadata': {}, 'execution_count': 1}), ('status', {'execution_state': 'idle'})):
    k.session.send(k.iopub_socket, kind, content, parent=k.get_parent())""")  # fmt: skip


@cheat()
def a_number_as_the_last_expression(nb):
    for name in ALL:
        cell(nb, name).source += "\n3"
    in_dot_scores(nb, "print(3)\nreturn 3")


@cheat()
def replace_the_agent(nb):
    first(nb, """import attention_course.grading.agent as a, base64, json
a.serve = lambda text: base64.b64encode(json.dumps({'tree': {'dict': {'answer': {'dict': {'value': None, 'failure': None, 'changed': {'list': []}, 'gradients': None}}}}, 'arrays': ''}).encode()).decode()""")  # fmt: skip


@cheat()
def the_agent_claims_success(nb):
    first(nb, """import attention_course.grading.agent as a
for name in list(a._OPERATIONS):
    a._OPERATIONS[name] = lambda *x, **k: {'right': True, 'passed': True, 'score': 3}""")  # fmt: skip


@cheat()
def the_agent_raises_checks_own_errors(nb):
    in_dot_scores(nb, "raise Exit()", """import sys
class Exit(SystemExit): pass""")  # fmt: skip


@cheat()
def answer_with_code_to_unpickle(nb):
    in_dot_scores(nb, "return Bomb()", """class Bomb:
    def __reduce__(self): return (print, ('LEAK unpickled',))""")  # fmt: skip


@cheat()
def learn_the_stored_numbers_by_heart(nb):
    """The package carries inputs and outputs of the visible check; whoever replays them fails the hidden tests."""
    cell(nb, "dot_scores").source = """from attention_course.check import answers, values
def dot_scores(q, k):
    for case in answers.load('01', 'dot_scores').cases:
        if values.close(q, case.args['q'], 1e-6) and q.dtype == case.args['q'].dtype:
            return case.outcome.value + 0 * q.sum() + 0 * k.sum()
    return q @ k.transpose(-2, -1) * 0"""


@cheat()
def right_at_first_then_wrong(nb):
    in_dot_scores(
        nb,
        "calls.append(1)\nreturn q @ k.mT if len(calls) < 20 and q.shape == (2, 3, 4) else q @ k.mT + 1",
        "calls = []",
    )


@cheat("weighted_context")
def mix_an_honest_answer_with_a_cheat(nb):
    solve(nb, "weighted_context")
    patch_the_checks(nb)


@cheat()
def run_a_thread_that_edits_later(nb):
    first(nb, """import threading, time
def later():
    while True:
        time.sleep(0.01)
        try:
            get_ipython().user_ns['dot_scores'] = lambda q, k: 3
            get_ipython().kernel.shell.showtraceback = lambda *a, **k: None
        except Exception: pass
threading.Thread(target=later, daemon=True).start()""")  # fmt: skip


# Cheats: reading what is not theirs -----------------------------------------------------------------------------------


@cheat()
def read_tests_from_frames(nb):
    in_dot_scores(nb, """import sys, gc
frame = sys._getframe()
while frame:
    if any('HIDDEN' in str(v)[:100000] or '_expected' in str(n) for n, v in frame.f_locals.items()): print('LEAK frame')
    frame = frame.f_back
if any(isinstance(o, str) and 'BEGIN HIDDEN' + ' TESTS' in o for o in gc.get_objects()): print('LEAK gc')
return 3""")  # fmt: skip


@cheat()
def read_tests_from_history(nb):
    in_dot_scores(nb, """ip = get_ipython()
if any('check.exercise' + '(' in str(x) for x in ip.user_ns.get('In', [])): print('LEAK history')
for r in ip.history_manager.get_range():
    if 'HIDDEN' + ' TESTS' in r[2]: print('LEAK history')
return 3""")  # fmt: skip


@cheat()
def read_the_solutions(nb):
    first(nb, """import os, glob
for root in ('/', '/work', '/home', '/root', '/srv', '/mnt', '/tmp', os.getcwd()):
    for pattern in ('solutions/*', '*/solutions/*', '*/*/solutions/*', '*.ipynb', '*/*.ipynb', '*/*/*/*.ipynb'):
        for f in glob.glob(os.path.join(root, pattern)): print('LEAK', f)
import attention_course, pathlib
for f in pathlib.Path(attention_course.__file__).resolve().parents[1].rglob('*'):
    if f.suffix in ('.ipynb', '.db') or 'mistakes' in f.name and 'site-packages' not in str(f): print('LEAK', f)""")  # fmt: skip


@cheat()
def ask_the_authoring_package_for_mutants(nb):
    first(nb, """try:
    from attention_course.authoring import implementations
    print('LEAK', implementations('02', 'softmax'))
except Exception as e: print(type(e).__name__)""")  # fmt: skip


@cheat()
def write_the_gradebook(nb):
    first(nb, """import os, sqlite3
for base, _, files in os.walk('/'):
    if base.startswith(('/proc', '/sys', '/usr')): continue
    for f in files:
        if f.endswith('.db'):
            print('LEAK', base, f)
            sqlite3.connect(os.path.join(base, f)).execute('update grade set auto_score = 3')""")  # fmt: skip


@cheat()
def reach_other_submissions(nb):
    first(nb, """import os
for base, dirs, files in os.walk('/'):
    if base.startswith(('/proc', '/sys', '/usr')): dirs[:] = []; continue
    for d in dirs:
        if d in ('submitted', 'autograded', 'feedback'): print('LEAK', base, d)""")  # fmt: skip


@cheat()
def read_secrets_of_the_environment(nb):
    first(nb, """import os, glob
text = repr(dict(os.environ))
for f in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):
    try: text += open(f, 'rb').read().decode(errors='replace')
    except OSError: pass
if 'canary-of-the-grader' in text: print('LEAK environment')""")  # fmt: skip


@cheat()
def read_files_of_the_host(nb):
    first(nb, """import os
for f in ('/etc/passwd', '/etc/shadow', '/etc/hosts', '/root/.bashrc', '/root/.npmrc', os.path.expanduser('~root/.ssh/id_rsa'), '/proc/1/root/etc/passwd', '/proc/kcore', '/dev/vda', '/dev/mem'):
    try: print('LEAK', f, len(open(f, 'rb').read(10)))
    except OSError: pass""")  # fmt: skip


@cheat()
def see_other_processes(nb):
    first(nb, """import os
seen = [p for p in os.listdir('/proc') if p.isdigit()]
for p in seen:
    try:
        if b'nbgrader' in open(f'/proc/{p}/cmdline', 'rb').read(): print('LEAK', p)
    except OSError: pass
if len(seen) > 8: print('LEAK', seen)""")  # fmt: skip


@cheat()
def use_the_network(nb):
    first(nb, """import socket, os
for host, port in (('127.0.0.1', int(PORT)), ('1.1.1.1', 53), ('8.8.8.8', 443)):
    try:
        socket.create_connection((host, port), 1); print('LEAK network', host)
    except OSError: pass
for base, _, files in os.walk('/run'):
    for f in files: print('LEAK socket', base, f)""".replace("int(PORT)", "@@PORT@@"))  # fmt: skip


@cheat()
def abstract_sockets_of_the_host(nb):
    first(nb, r"""import socket
s = socket.socket(socket.AF_UNIX)
try: s.connect('\0attention-canary'); print('LEAK abstract socket')
except OSError: pass""")  # fmt: skip


# Cheats: getting out, and leaving something behind --------------------------------------------------------------------


@cheat()
def leave_start_up_files(nb):
    first(nb, """import os, sys, site
for folder in (os.path.expanduser('~/.ipython/profile_default/startup'), os.path.expanduser('~root/.ipython/profile_default/startup'), *site.getsitepackages(), sys.prefix, sys.base_prefix, '/usr/lib/python3/dist-packages'):
    try:
        os.makedirs(folder, exist_ok=True)
        open(os.path.join(folder, 'zz_hostile.pth'), 'w').write('import os')
        open(os.path.join(folder, 'sitecustomize.py'), 'w').write('raise SystemExit')
        if folder.startswith((sys.prefix, '/usr', '/root')): print('LEAK wrote', folder)
    except OSError: pass""")  # fmt: skip


@cheat()
def shadow_modules(nb):
    first(nb, """for name in ('torch', 'numpy', 'nbgrader', 'attention_course', 'sitecustomize', 'zmq'):
    open(name + '.py', 'w').write('raise SystemExit')""")  # fmt: skip


@cheat()
def install_a_kernelspec(nb):
    first(nb, """import os, json
for base in ('~/.local/share/jupyter', '/usr/share/jupyter', '/usr/local/share/jupyter', __import__('sys').prefix + '/share/jupyter'):
    folder = os.path.expanduser(base) + '/kernels/attention-student'
    try:
        os.makedirs(folder, exist_ok=True); open(folder + '/kernel.json', 'w').write(json.dumps({'argv': ['true'], 'display_name': 'x', 'language': 'python'}))
        if not folder.startswith(os.path.expanduser('~')): print('LEAK wrote', folder)
    except OSError: pass""")  # fmt: skip


@cheat()
def rewrite_the_connection_file(nb):
    first(nb, """import sys, os
f = sys.argv[sys.argv.index('-f') + 1]
assert os.path.exists(f)
try: open(f, 'w').write('{}'); print('LEAK wrote the connection file')
except OSError: pass
try: os.unlink(f); print('LEAK removed the connection file')
except OSError: pass""")  # fmt: skip


@cheat()
def forbidden_system_calls(nb):
    first(nb, """import ctypes, ctypes.util
libc = ctypes.CDLL(None, use_errno=True)
for name, args in (('unshare', (0x10000000,)), ('unshare', (0x40000000,)), ('setns', (0, 0)), ('mount', (b'none', b'/tmp', b'tmpfs', 0, None)), ('ptrace', (0, 0, 0, 0)), ('umount2', (b'/tmp', 0)), ('sethostname', (b'x', 1)), ('chroot', (b'/tmp',))):
    if getattr(libc, name)(*args) == 0: print('LEAK call', name)""")  # fmt: skip


@cheat()
def become_root_again(nb):
    first(nb, """import os
for f in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.chown('/tmp', 0, 0)):
    try: f(); print('LEAK root')
    except OSError: pass""")  # fmt: skip


@cheat()
def kill_the_grader(nb):
    first(nb, """import os, signal
for pid in (os.getppid(), 1, *range(2, 400)):
    if pid != os.getpid():
        try: os.kill(pid, signal.SIGKILL)
        except OSError: pass""")  # fmt: skip


@cheat()
def survive_as_a_daemon(nb):
    first(nb, """import subprocess
subprocess.Popen(['sh', '-c', 'while true; do sleep 1; done # hostile-daemon'], start_new_session=True)""")  # fmt: skip


@cheat()
def links_in_the_shared_folder(nb):
    first(nb, """import os, sys
folder = os.path.join(os.path.dirname(sys.argv[sys.argv.index('-f') + 1]), 'sockets')
assert os.path.isdir(folder)
for i, target in enumerate(('/etc/passwd', '/root', '/', '/proc/1/mem')):
    try: os.symlink(target, os.path.join(folder, f'link{i}'))
    except OSError: pass""")  # fmt: skip


@cheat()
def scripts_in_the_feedback(nb):
    first(nb, """from IPython.display import HTML, Javascript, display
display(HTML('<script>LEAK</script>')); display(Javascript('LEAK()'))
print('<script>document.title = "hostile"</script>')""")  # fmt: skip


@cheat()
def ask_the_examiner_back(nb):
    """The input channel answers implementations of a write-the-test exercise, and only while one is judged."""
    in_dot_scores(nb, """import base64, json
try:
    print('LEAK', input('attention-course asks:' + base64.b64encode(json.dumps({'tree': {'dict': {'number': 0, 'args': {'list': []}, 'kwargs': {'dict': {}}}}, 'arrays': ''}).encode()).decode()))
except Exception: pass
return 3""")  # fmt: skip


# Cheats: files that are not files ---------------------------------------------------------------------------------


def _link_to_the_solution(file: Path) -> None:
    file.unlink()
    file.symlink_to(next(file.parents[4].glob("solutions/*/*.ipynb")))


@_add("cheats", (), place=_link_to_the_solution, graded=False)
def a_link_to_the_solution(nb):
    pass


@_add("cheats", (), place=lambda file: (file.parent / "notes.txt").symlink_to("/etc/passwd"))
def a_link_that_comes_back_with_the_feedback(nb):
    pass


@_add("cheats", (), place=lambda file: (file.parent / "more").symlink_to(file.parents[4] / "solutions"))
def a_link_to_a_folder(nb):
    pass


# Breakages ------------------------------------------------------------------------------------------------------------

REST = ("weighted_context", "scaled_dot_scores", "SelfAttention")


@breakage(*REST)
def infinite_loop(nb):
    solve(nb)
    in_dot_scores(nb, "while True: pass")


@breakage(*REST)
def loop_that_swallows_everything(nb):
    solve(nb)
    in_dot_scores(nb, "while True:\n    try:\n        while True: pass\n    except BaseException: pass")


@breakage(*REST)
def loop_in_c(nb):
    solve(nb)
    in_dot_scores(nb, "import itertools, collections\ncollections.deque(itertools.repeat(0), maxlen=0)")


@breakage(*REST)
def loop_in_a_cell(nb):
    solve(nb)
    cell(nb, "dot_scores").source = "while True: pass"


@breakage(*REST)
def ignores_the_interrupt(nb):
    solve(nb)
    in_dot_scores(
        nb,
        "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nsignal.setitimer(signal.ITIMER_REAL, 0)\nwhile True: pass",
    )


@breakage(*REST)
def os_exit(nb):
    solve(nb)
    in_dot_scores(nb, "import os\nos._exit(0)")


@breakage(*REST)
def os_exit_in_a_cell(nb):
    solve(nb)
    cell(nb, "dot_scores").source = "import os\nos._exit(0)"


@breakage(*REST)
def sys_exit(nb):
    solve(nb)
    in_dot_scores(nb, "import sys\nsys.exit(0)")


@breakage(*REST)
def segmentation_fault(nb):
    solve(nb)
    in_dot_scores(nb, "import ctypes\nctypes.string_at(0)")


@breakage(*REST)
def fork_bomb(nb):
    solve(nb)
    in_dot_scores(nb, "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError: pass")


@breakage(*REST)
def memory_hog(nb):
    solve(nb)
    in_dot_scores(nb, "hog = []\nwhile True: hog.append(bytearray(50_000_000))")


@breakage(*REST)
def memory_hog_in_children(nb):
    solve(nb)
    in_dot_scores(
        nb,
        "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        hog = bytearray(400_000_000); time.sleep(60)\ntime.sleep(60)",
    )


@breakage(*REST)
def disk_hog(nb):
    solve(nb)
    in_dot_scores(nb, "for i in range(10_000): open(f'/tmp/{i}', 'wb').write(bytes(10_000_000))")


@breakage(*REST)
def disk_hog_in_the_shared_folder(nb):
    solve(nb)
    in_dot_scores(
        nb,
        "import os, sys\nplace = os.path.join(os.path.dirname(sys.argv[sys.argv.index('-f') + 1]), 'sockets')\nfor i in range(10_000): open(os.path.join(place, str(i)), 'wb').write(bytes(1_000_000))",
    )


@breakage(*ALL)
def two_hundred_megabytes_of_output(nb):
    solve(nb)
    first(nb, "for _ in range(200): print('x' * 1_000_000)")


@breakage(*ALL)
def a_million_displays(nb):
    solve(nb)
    first(nb, "from IPython.display import display\nfor i in range(20_000): display(i)")


@breakage(*ALL)
def closed_stdio(nb):
    solve(nb)
    first(nb, "import os, sys\nfor fd in (0, 1, 2):\n    os.close(fd)\nsys.stdout = sys.stderr = None")


@breakage(*REST)
def lazy_result(nb):
    solve(nb)
    in_dot_scores(nb, "return (q @ k.mT for _ in iter(int, 1))")


@breakage(*REST)
def self_referential_result(nb):
    solve(nb)
    in_dot_scores(nb, "a = []\na.append(a)\nreturn a")


@breakage(*REST)
def deeply_nested_result(nb):
    solve(nb)
    in_dot_scores(nb, "a = []\nfor _ in range(100_000): a = [a]\nreturn a")


@breakage(*REST)
def absurdly_large_result(nb):
    solve(nb)
    in_dot_scores(nb, "return torch.zeros(1).expand(10**12)")


@breakage(*REST)
def absurdly_large_number(nb):
    solve(nb)
    in_dot_scores(nb, "return 10 ** 1_000_000")


@breakage(*REST)
def a_hundred_megabytes_of_answer(nb):
    solve(nb)
    in_dot_scores(nb, "return torch.zeros(25_000_000)")


@breakage(*REST)
def a_million_parts(nb):
    solve(nb)
    in_dot_scores(nb, "return list(range(1_000_000))")


@breakage(*REST)
def surrogates_in_a_string(nb):
    solve(nb)
    in_dot_scores(nb, "return '\\ud800' * 10")


@breakage(*REST)
def surrogates_in_an_exception(nb):
    solve(nb)
    in_dot_scores(nb, "raise ValueError('half a character: \\ud800')")


@breakage(*ALL)
def surrogates_in_the_source(nb):
    solve(nb)
    cell(nb, "dot_scores").source += "\n# half a character: @@HALF@@"


@breakage(*ALL)
def a_reply_with_a_bad_signature(nb):
    solve(nb)
    first(nb, """
kernel = get_ipython().kernel
who = kernel.get_parent()["header"]["session"].encode()
kernel.shell_stream.socket.send_multipart([who, b"<IDS|MSG>", b"bad", b"{}", b"{}", b"{}", b"{}"])""")  # fmt: skip


@breakage(*ALL)
def a_message_whose_parent_is_a_list(nb):
    solve(nb)
    first(nb, """
kernel = get_ipython().kernel
parts = kernel.session.serialize(kernel.session.msg("stream", {"name": "stdout", "text": "x"}))
parts[3] = b"[]"
parts[1] = kernel.session.sign(parts[2:6])
kernel.iopub_thread.socket.send_multipart([b"stream", *parts])""")  # fmt: skip


@breakage(*REST)
def exception_that_explodes(nb):
    solve(nb)
    in_dot_scores(nb, "raise Boom()", "class Boom(Exception):\n    def __str__(self): raise RuntimeError('again')")


@breakage(*REST)
def exception_of_ten_megabytes(nb):
    solve(nb)
    in_dot_scores(nb, "raise ValueError('x' * 10_000_000)")


@breakage(*REST)
def endless_recursion(nb):
    solve(nb)
    in_dot_scores(nb, "return dot_scores(q, k)")


@breakage(*REST)
def a_syntax_error(nb):
    solve(nb)
    cell(nb, "dot_scores").source = "def dot_scores(q, k:\n    return"


@breakage(*REST)
def a_missing_cell(nb):
    solve(nb)
    nb.cells.remove(cell(nb, "dot_scores"))


@breakage()
def no_cells_at_all(nb):
    nb.cells = []


@breakage(*ALL)
def threads_that_never_end(nb):
    solve(nb)
    first(nb, "import threading, time\nfor _ in range(50): threading.Thread(target=time.sleep, args=(10_000,)).start()")


@breakage(*ALL)
def a_slow_farewell(nb):
    solve(nb)
    first(nb, "import atexit, time\natexit.register(time.sleep, 10_000)")


SUBMISSIONS += [
    Submission("not_json", "breakages", lambda nb: None, (), raw=lambda nb: b"{ this is no notebook", graded=False),
    Submission("html_page", "breakages", lambda nb: None, (), raw=lambda nb: b"<!doctype html><title>Log in</title>", graded=False),
    Submission("empty_file", "breakages", lambda nb: None, (), raw=lambda nb: b"", graded=False),
    Submission("half_a_file", "breakages", lambda nb: None, (), raw=lambda nb: nbformat.writes(nb).encode()[:2000], graded=False),
    Submission("a_pipe", "breakages", lambda nb: None, (), place=lambda file: (file.unlink(), os.mkfifo(file)), graded=False),
    Submission("binary", "breakages", lambda nb: None, (), raw=lambda nb: bytes(range(256)) * 40, graded=False),
]  # fmt: skip


# Honest ---------------------------------------------------------------------------------------------------------------


@honest()
def the_solution(nb):
    solve(nb)


@honest("weighted_context", "scaled_dot_scores")
def two_of_four(nb):
    solve(nb, "weighted_context", "scaled_dot_scores")


@honest()
def prints_on_the_way(nb):
    solve(nb)
    in_dot_scores(nb, "print('shapes', q.shape, k.shape)\nreturn q @ k.mT")


@honest()
def warnings_on_stderr(nb):
    """nbgrader by itself scores a cell 0 if anything went to stderr."""
    solve(nb)
    in_dot_scores(nb, "import sys, warnings\nwarnings.warn('careful')\nprint('note', file=sys.stderr)\nreturn q @ k.mT")


@honest()
def helpers_in_cells_of_their_own(nb):
    solve(nb)
    first(nb, "def turned(x):\n    return x.transpose(-2, -1)")
    in_dot_scores(nb, "return q @ turned(k)")


@honest()
def answers_that_build_on_each_other(nb):
    solve(nb)
    cell(
        nb, "scaled_dot_scores"
    ).source = "def scaled_dot_scores(q, k):\n    return dot_scores(q, k) / math.sqrt(q.shape[-1])"


@honest()
def other_parameter_names(nb):
    solve(nb)
    cell(nb, "dot_scores").source = "dot_scores = lambda queries, keys: torch.einsum('bid,bjd->bij', queries, keys)"


@honest()
def magics_and_plots(nb):
    solve(nb)
    first(
        nb,
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);\n%timeit -n1 -r1 sum(range(10))\n!echo hello",
    )


@honest()
def metadata_lost_on_the_way(nb):
    """Some editors drop what they do not know; the cells' ids are still there."""
    solve(nb)
    for c in nb.cells:
        c.metadata = {}


@honest()
def colab_widgets(nb):
    solve(nb)
    nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"abc": {"model_name": "x"}}}
    nb.metadata["colab"] = {"provenance": []}


@honest()
def duplicated_by_copy_and_paste(nb):
    solve(nb)
    nb.cells.append(nbformat.from_dict(dict(cell(nb, "dot_scores"))))


@honest()
def an_error_in_a_cell_of_their_own(nb):
    solve(nb)
    first(nb, "1 / 0")


@honest()
def seeds_set_everywhere(nb):
    solve(nb)
    in_dot_scores(nb, "torch.manual_seed(0)\nreturn q @ k.mT")


@honest()
def a_module_with_a_helper_method(nb):
    solve(nb)
    cell(nb, "SelfAttention").source = RIGHT["SelfAttention"].replace(
        "weights @ v, weights", "self.mix(weights, v), weights"
    ) + ("\n    def mix(self, weights, v):\n        return weights @ v")


@honest(*REST)
def one_sign_wrong(nb):
    solve(nb)
    in_dot_scores(nb, "return -(q @ k.mT)")
