# SPDX-License-Identifier: MIT
"""login_shell: start files are active, and whatever they do, the command runs as it was asked (fault B028 and its kind)."""

import pytest

# What a start file does, and whether the shell that reads it is still there afterwards.
KEEPS = {
    "echo": "echo noise; echo noise >&2",
    "false": "false",
    "set -e": "set -e",
    "return": "return 3",
    "syntax error": "if then",
    "read": "read x",
    "cat": "cat",
    "set -u": "set -u",
    "set -x": "set -x",
    "set -v": "set -v",
    "set -n": "set -n",
    "set options": "set -f; set -C; set -o pipefail",
    "cd": "cd /usr",
    "unset PATH": "unset PATH",
    "background": "sleep 3000 &",
    "trap EXIT": "trap 'echo trap; exit 9' EXIT",
    "trap DEBUG": "trap 'echo debug' DEBUG",
    "ignored signals": "trap '' TERM INT PIPE",
    "redirections": "exec >/tmp/start-files-log 2>&1 </dev/null",
    "closed descriptors": "exec <&- >&- 2>&-",
    "functions": "cd() { echo no; }; read() { echo no; }; eval() { echo no; }; trap() { echo no; }",
    "IFS": "IFS=,",
}
ENDS = {
    "exit": "exit 3",
    "set -e and a failure": "set -e; false", # Debian's ~/.profile is what reads ~/.bashrc here
    "exec shell": "exec sh",
    "exec program": "exec sleep 0",
    "exec nothing": "exec /no/such/shell",
    "killed": "kill -9 $$",
}
COMMAND = "echo out; echo err >&2; pwd; cat; exit 5"


@pytest.fixture(scope="module")
def home(server):
    """A sandbox with bash; write(text) makes its ~/.bashrc."""
    box = server.create()
    box.write = lambda text, name=".bashrc": box.out(f"cat > ~/{name}", stdin=text)
    yield box
    box.delete()


@pytest.fixture(scope="module", params=["dash", "busybox"])
def sh_home(request, server, busybox):
    """The same without bash: only ~/.profile is read."""
    box = server.create(image=busybox if request.param == "busybox" else "default")
    if request.param == "dash":
        box.out("mv /bin/bash /bin/bash.away")
    box.write = lambda text: box.out("mkdir -p ~ && cat > ~/.profile", stdin=text)
    yield box
    box.delete()


def run(box, **fields):
    return box.exec(COMMAND, login_shell=True, stdin="in\n", cwd="/tmp", **fields)


def check(job, said):
    assert (job["exit_code"], job["stdout"], job["stderr"]) == (5, "out\n/tmp\nin\n", "err\n"), job
    assert (job["error"] is not None and "start files ended the login shell" in job["error"]) == said, job


@pytest.mark.parametrize("name", KEEPS)
def test_b028_start_files_do_no_harm(home, name):
    home.write(KEEPS[name] + "\n")
    check(run(home), said=False)
    home.out("pkill -x sleep; true")


@pytest.mark.parametrize("name", ENDS)
def test_a_start_file_that_ends_the_shell_does_not_end_the_command(home, name):
    home.write(ENDS[name] + "\n")
    check(run(home), said=True)


@pytest.mark.parametrize("name", sorted(KEEPS.keys() | ENDS.keys()))
def test_start_files_do_no_harm_without_bash(sh_home, name):
    sh_home.write((KEEPS | ENDS)[name] + "\n")
    job = run(sh_home)
    assert (job["exit_code"], job["stdout"], job["stderr"]) == (5, "out\n/tmp\nin\n", "err\n"), job
    sh_home.write("")


def test_start_files_are_active_without_bash(sh_home):
    sh_home.write("export FROM=profile; f() { echo function; }")
    assert sh_home.out("f; echo $FROM; ls /proc/self/fd | wc -l", login_shell=True) == "function\nprofile\n4\n"


def test_conda_like_start_files_are_active(home):
    home.write("""case $- in *i*) ;; *) return;; esac
[ -z "$PS1" ] && return
__conda_setup="$(printf 'export CONDA_SHLVL=0\\n')"
eval "$__conda_setup"
conda() { CONDA_ENV=$2; export PATH="/opt/env/$2/bin:$PATH"; PS1="($2) $PS1"; }
conda activate work
alias ll='echo aliased'
exec 3>/dev/null
""")
    job = home.exec("echo $CONDA_ENV ${PATH%%:*}\nll\nconda activate b; echo $CONDA_ENV", login_shell=True)
    assert (job["stdout"], job["stderr"], job["error"]) == ("work /opt/env/work/bin\naliased\nb\n", "", None)


def test_bashrc_that_the_profile_reads_is_read_once(home):
    home.write("[ -f ~/.bashrc ] && . ~/.bashrc\n", ".bash_profile")
    home.write("echo x >> /tmp/read-count\n")
    home.out("rm -f /tmp/read-count", login_shell=False)
    assert home.out("wc -l < /tmp/read-count", login_shell=True).strip() == "1"
    home.out("rm ~/.bash_profile")


def test_start_files_that_hang_are_bounded_by_the_timeout(home):
    for text in ("sleep 3000", "exec sleep 3000", "while :; do :; done"):
        home.write(text + "\n")
        job = home.exec("touch /tmp/ran", login_shell=True, timeout_seconds=1)
        assert (job["verdict"], job["exit_code"], job["stdout"], job["stderr"]) == ("timed_out", 124, "", "")
    assert home.out("ls /tmp/ran 2>/dev/null; pgrep -c sleep; true").strip() == "0"


def test_the_command_runs_once_when_start_files_end_the_shell(home):
    for text in ("exit 0", "", "exec cat"):
        home.write(text + "\n")
        home.out("rm -f /tmp/once")
        home.exec("echo run >> /tmp/once; kill -9 $$", login_shell=True)
        assert home.out("cat /tmp/once") == "run\n"


@pytest.mark.parametrize("start", ["", "exit 1"])
def test_b030_long_text_in_a_login_shell(home, start):
    home.write(start + "\n")
    assert home.out("echo " + "x" * 1_200_000 + " | wc -c", login_shell=True) == "1200001\n"


def test_ends_of_a_login_shell_are_the_commands(home):
    home.write("export A=1\n")
    assert home.exec("exit 7", login_shell=True)["exit_code"] == 7
    assert home.exec("kill -KILL $$", login_shell=True)["signal"] == 9
    assert home.exec("", login_shell=True)["exit_code"] == 0


def test_a_login_shell_leaves_no_trace(home):
    home.write("export A=1\n")
    assert home.out("ls /proc/self/fd | wc -l; ls ~/.bash_history 2>/dev/null; echo $#", login_shell=True) == "4\n0\n"


def test_cwd_is_the_asked_or_the_default_one(home):
    home.write("cd /usr\n")
    home.out("mkdir -p \"/tmp/it's a dir\"")
    assert home.out("pwd", login_shell=True, cwd="/tmp/it's a dir") == "/tmp/it's a dir\n"
    assert home.out("pwd", login_shell=True) == home.out("pwd")
    job = home.exec("true", login_shell=True, cwd="/no/such")
    assert (job["verdict"], job["exit_code"]) == ("never_started", 126)
