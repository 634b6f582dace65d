"""When a command is finished, how it ended, what it said (fault groups A to E)."""

import base64
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchard_server import eventually


# --- A: when is a command finished ----------------------------------------
def test_b001_background_child_does_not_delay_the_answer(fresh):
    job = fresh.exec("sleep 300 & echo started", timeout_seconds=200)
    assert (job["status"], job["exit_code"], job["stdout"]) == ("succeeded", 0, "started\n")
    assert fresh.exec("pgrep -x sleep")["exit_code"] == 0


def test_b003_output_that_ends_at_exit_is_whole(box):
    for _ in range(30):
        job = box.exec("head -c 1000000 /dev/zero | tr '\\0' x")
        assert job["stdout_bytes"] == 1000000
        assert len(job["stdout"]) == 1000000


def test_b004_drain_after_a_kill_has_a_deadline(fresh):
    job = fresh.exec("setsid sleep 600 & sleep 600", timeout_seconds=1)
    assert job["verdict"] == "timed_out" and job["usage"]["wall_s"] < 100
    assert fresh.out("echo ok") == "ok\n"


def test_b005_heredoc_and_set_e_stay_in_their_command(box):
    job = box.exec("cat > /tmp/t <<'EOF'\nhi $HOME\nEOF\nset -e; false; echo no")
    assert (job["exit_code"], job["stdout"]) == (1, "")
    out = box.out("cat /tmp/t; echo $-")
    assert out.startswith("hi $HOME\n")
    assert "e" not in out.splitlines()[1]


# --- B: timeout, kill, cancel ---------------------------------------------
def test_b007_timeout_kills_the_whole_tree(fresh):
    job = fresh.exec("bash -c 'sleep 500 & sleep 500 & wait'; echo x", timeout_seconds=1)
    assert (job["status"], job["exit_code"], job["verdict"]) == ("failed", 124, "timed_out")
    assert fresh.exec("pgrep -xc sleep")["stdout"].strip() == "0"


def test_b007_timeout_kills_what_left_the_session(fresh):
    job = fresh.exec("setsid setsid sleep 501 & disown; sleep 502", timeout_seconds=1)
    assert job["verdict"] == "timed_out"
    assert fresh.exec("pgrep -xc sleep")["stdout"].strip() == "0"


def test_b007_timeout_spares_what_an_earlier_command_left(fresh):
    fresh.out("setsid sleep 503 >/dev/null 2>&1 & echo")
    assert fresh.exec("sleep 504", timeout_seconds=1)["verdict"] == "timed_out"
    assert fresh.exec("pgrep -xc sleep")["stdout"].strip() == "1"


def test_b008_timeout_never_hits_the_agent(fresh):
    agent = fresh.agent_pid()
    fresh.exec("sleep 60", timeout_seconds=1)
    assert fresh.out("echo alive") == "alive\n"
    assert fresh.get().json()["status"] == "ready"
    assert fresh.agent_pid() == agent


def test_b011_output_before_a_timeout_is_kept(box):
    job = box.exec("echo one; echo two >&2; sleep 60", timeout_seconds=1)
    assert (job["status"], job["verdict"], job["stdout"]) == ("failed", "timed_out", "one\n")
    assert job["stderr"].startswith("two\n")
    assert job["error"] == "Command timed out after 1s"


def test_b012_timeout_ends_the_command_itself(box):
    job = box.exec("sleep 300.12; touch /tmp/late", timeout_seconds=1)
    assert job["verdict"] == "timed_out"
    eventually(lambda: box.exec("pgrep -f [3]00.12")["exit_code"] == 1, 10, "all of it gone")
    assert box.exec("test -e /tmp/late")["exit_code"] == 1


def test_b013_stopped_and_term_immune_processes_die(fresh):
    job = fresh.exec("trap '' TERM INT HUP; (kill -STOP $BASHPID) & sleep 60", timeout_seconds=1)
    assert job["verdict"] == "timed_out"
    assert fresh.exec("ps -eo stat= | grep -c ^T")["stdout"].strip() == "0"


@pytest.mark.parametrize("value", [-1, "5", 1e18, 99999999999999999999, True, [], float("inf")])
def test_b014_bad_timeouts_are_refused(box, value):
    if value == float("inf"):
        answer = box.client.post(f"{box.url}/exec", content=b'{"command":"true","timeout_seconds":1e400}')
    else:
        answer = box.post_exec("true", timeout_seconds=value)
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("value", [0, None, 0.5, 5])
def test_b014_good_timeouts(box, value):
    assert box.exec("true", timeout_seconds=value)["status"] == "succeeded"


def test_b014_fraction_counts(box):
    job = box.exec("sleep 20", timeout_seconds=0.5)
    assert job["error"] == "Command timed out after 0.5s"


def test_b015_queue_time_is_not_the_commands_time(fresh):
    jobs = [fresh.start("sleep 1.5", timeout_seconds=2) for _ in range(3)]
    assert [fresh.wait_job(job)["status"] for job in jobs] == ["succeeded"] * 3


def test_b015_server_side_wait_that_runs_out_says_so(fresh):
    job = fresh.exec("sleep 5; echo end", timeout_seconds=20, wait_timeout=0.5)
    assert job["status"] == "running" and job["exit_code"] is None
    assert fresh.wait_job(job["job_id"])["stdout"] == "end\n"


def test_b016_stdin_is_empty(box):
    job = box.exec("cat; read x; echo rc=$?; python3 -c 'input()'", timeout_seconds=10)
    assert job["stdout"] == "rc=1\n"
    assert "EOFError" in job["stderr"] and job["exit_code"] == 1


def test_stdin_is_given(box):
    assert box.out("cat", stdin="a\nb") == "a\nb"
    assert box.out("wc -c", stdin_base64=base64.b64encode(bytes(1000)).decode()).strip() == "1000"
    assert box.post_exec("cat", stdin="a", stdin_base64="YQ==").status_code == 422
    assert box.post_exec("cat", stdin_base64="@@@@").status_code == 422


def test_cancel_a_running_job(fresh):
    job_id = fresh.start("setsid sleep 500 & sleep 501")
    fresh.wait_running(job_id)
    answer = fresh.client.post(f"/jobs/{job_id}/cancel")
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["verdict"]) == ("failed", "canceled")
    assert fresh.exec("pgrep -xc sleep")["stdout"].strip() == "0"


def test_cancel_a_queued_job(fresh):
    first = fresh.start("sleep 2")
    second = fresh.start("touch /tmp/never")
    answer = fresh.client.post(f"/jobs/{second}/cancel")
    assert answer.json()["verdict"] == "canceled"
    assert fresh.wait_job(first)["status"] == "succeeded"
    assert fresh.exec("test -e /tmp/never")["exit_code"] == 1


def test_cancel_of_an_ended_job_changes_nothing(box):
    job = box.exec("exit 3")
    again = box.client.post(f"/jobs/{job['job_id']}/cancel").json()
    assert (again["exit_code"], again["verdict"]) == (3, "exited")


# --- C: exit codes --------------------------------------------------------
@pytest.mark.parametrize("command,code,signal", [
    ("kill -9 $$", 137, 9),
    ("bash -c 'kill -9 $$'; exit $?", 137, None),
    ("kill -SEGV $$", 139, 11),
    ("exit 7", 7, None),
    ("nosuchprogram", 127, None),
    ("/etc/passwd", 126, None),
])
def test_b019_exit_codes(box, command, code, signal):
    job = box.exec(command)
    assert (job["status"], job["exit_code"]) == ("failed", code)
    assert job.get("signal") == signal
    assert job["verdict"] == ("signaled" if signal else "exited")


def test_b020_oom_kill_is_told_as_such(server):
    small = server.create(memory="128Mi")
    job = small.exec("exec python3 -c 'b=bytearray(10**9)'")
    assert (job["status"], job["exit_code"], job["verdict"]) == ("failed", 137, "oom_killed")
    assert "memory" in job["error"]
    assert small.out("echo ok") == "ok\n"
    small.delete()


def test_b021_no_exit_code_before_the_end(fresh):
    job_id = fresh.start("sleep 1; exit 5")
    assert fresh.job(job_id)["exit_code"] is None
    assert fresh.wait_job(job_id)["exit_code"] == 5


# --- D: output ------------------------------------------------------------
def test_b023_bytes_that_are_not_utf8(box):
    assert box.out("printf '\\377\\376ok\\n'") == "\ufffd\ufffdok\n"
    raw = box.out("printf '\\377\\376ok\\n'", encoding="base64")
    assert base64.b64decode(raw) == b"\xff\xfeok\n"


def test_b024_characters_are_never_split(box):
    out = box.out("python3 -c \"print('\\u2615'*100000,end='')\"")
    assert out == "\u2615" * 100000


@pytest.mark.parametrize("character", ["\u00e9", "\u2615", "\U0001f600"])
def test_b024_the_cap_cuts_no_character(box, character):
    for cap in range(1, 14):
        job = box.exec(["printf", "%s", character * 9], max_output_bytes=cap)
        head, tail = job["stdout"].split("\n")[0], job["stdout"].split("\n")[-1]
        assert (head + tail).strip(character) == "", job
        omitted = len((character * 9).encode()) - len((head + tail).encode())
        assert job["stdout"] == f"{head}\n...[{omitted} bytes omitted]...\n{tail}"


def test_words_that_quote_half_a_character_are_valid_json(box):
    long = "x" + "\u00e9" * 110
    job = box.exec([long])
    assert (job["exit_code"], job["verdict"]) == (127, "never_started")
    assert job["usage"] is None
    assert job["error"].startswith("x\u00e9") and job["error"].endswith(": not found")
    assert box.exec("true", cwd="/" + long)["verdict"] == "never_started"
    assert box.exec("true", env={long: "y" * 140000})["verdict"] == "never_started"
    assert long[:10] in box.post_exec("true", env={long + "=": "y"}).json()["detail"][0]["msg"]


def test_b026_output_beyond_the_cap_is_marked(box):
    job = box.exec("head -c 300000000 /dev/zero | tr '\\0' x; echo END >&2", timeout_seconds=120)
    assert job["status"] == "succeeded" and job["stdout_truncated"] is True
    assert job["stdout_bytes"] == 300000000
    assert len(job["stdout"]) < 2_200_000 and "omitted" in job["stdout"]
    assert job["stderr"] == "END\n" and job["stderr_truncated"] is False


def test_b026_a_command_may_ask_for_less(box):
    job = box.exec("seq 100000", max_output_bytes=1000)
    assert job["stdout_truncated"] and job["stdout"].startswith("1\n2\n")
    assert job["stdout"].endswith("99999\n100000\n")


def test_b028_stderr_of_a_login_shell_is_the_commands_own(box):
    job = box.exec("python3 -c 'import nosuch'; printf 'a\\rb' >&2", login_shell=True)
    assert "ModuleNotFoundError" in job["stderr"] and job["stderr"].endswith("a\rb")
    assert job["stderr"].startswith("Traceback")


def test_b028_bashrc_is_active_in_a_login_shell(fresh):
    fresh.out("echo 'export FROM_RC=yes' >> ~/.bashrc")
    job = fresh.exec("echo $FROM_RC; [ -t 0 ] || echo notty", login_shell=True)
    assert (job["stdout"], job["stderr"]) == ("yes\nnotty\n", "")


def test_empty_and_nul_output(box):
    assert box.out("true") == ""
    assert box.out("printf 'a\\0b'") == "a\0b"


# --- E: text, argv, environment -------------------------------------------
def test_b030_long_commands_and_arguments(box):
    text = "x" * 200_000
    assert box.out(f"echo {text} | wc -c") == "200001\n"
    script = "echo " + " ".join(["yy"] * 300_000) + " | wc -w"
    assert box.out(script) == "300000\n"


def test_b032_environment_values_travel_as_they_are(box):
    env = {"A": "l1\nl2", "B": "$HOME `id` $(id)", "C": "x=y 'q'"}
    assert box.out("printf '%s|' \"$A\" \"$B\" \"$C\"", env=env) == "|".join(env.values()) + "|"


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
def test_b033_illegal_environment_names(box, name):
    assert box.post_exec("touch /tmp/ran", env={name: "x"}).status_code == 422
    assert box.exec("test -e /tmp/ran")["exit_code"] == 1


def test_b033_strange_environment_names_reach_only_the_child(box):
    env = {"1X": "one", "BASH_FUNC_ls%%": "() { echo hacked; }", "LD_PRELOAD": "/x.so"}
    assert "one" in box.exec("env", env=env)["stdout"]
    assert "hacked" not in box.exec("ls /")["stdout"]
    assert box.exec("echo $LD_PRELOAD")["stdout"] == "\n"


def test_b034_nothing_of_the_agent_leaks(box):
    job = box.exec("env; tr '\\0' '\\n' < /proc/1/environ; cat /proc/$PPID/environ /proc/$PPID/cmdline /proc/1/cmdline")
    text = (job["stdout"] + job["stderr"]).lower()
    assert "token" not in text and "orchard_" not in text and box.server.key not in text


def test_b034_agent_memory_is_out_of_reach(box):
    assert box.exec("head -c1 /proc/1/mem || (exec 3<>/proc/1/mem) && echo open")["stdout"] == ""


def test_b036_argv_lists_are_exact(box):
    assert box.out(["python3", "-c", "print(\"a b\")"]) == "a b\n"
    assert box.out(["printf", "%s|", "a  b", "*", "$HOME", ""]) == "a  b|*|$HOME||"
    argv = ["printf", "%s|", "a  b", "it's", "", "$HOME", "é\n"]
    shown = box.exec(argv)["command"]
    assert shown == shlex.join(argv) and box.out(shown) == box.out(argv)
    assert box.post_exec([]).status_code == 422
    assert box.post_exec([1]).status_code == 422
    assert box.exec(["nosuch"])["exit_code"] == 127


@pytest.mark.parametrize("body", [
    b"[" * 100_000, b'{"command":"true","timeout_seconds":1e400}', b'{"command":"true"} x',
    b'\xef\xbb\xbf{"command":"true"}', b'{"command":"true","command":"false"}', b'{"command":5}',
    b'{"command":"true","env":[]}', b"", b"null", b'"x"', b"[]", b'{"command":NaN}', b"{}",
    b'{"command":"a\\u0000b"}', b'{"command":"true","cwd":5}', b'{"command":"true","encoding":"latin1"}',
])
def test_b150_bad_bodies(box, body):
    answer = box.client.post(f"{box.url}/exec", content=body)
    assert answer.status_code == 422, (body[:60], answer.text)
    assert answer.json()["detail"]


# --- F: shell, directory, user --------------------------------------------
def test_b038_cwd(box):
    job = box.exec("pwd; touch /tmp/wrong", cwd="/no/such")
    assert (job["status"], job["exit_code"], job["verdict"]) == ("failed", 126, "never_started")
    assert "/no/such" in job["error"] and "/no/such" in job["stderr"]
    assert box.exec("true", cwd="/etc/passwd")["exit_code"] == 126
    assert box.exec("test -e /tmp/wrong")["exit_code"] == 1
    assert box.out("pwd", cwd="/usr/lib") == "/usr/lib\n"
    assert box.out("cd / && mkdir -p sub/dir && pwd") == "/\n"
    assert box.out("pwd", cwd="sub/dir").endswith("sub/dir\n")


def test_user_of_a_command(box):
    assert box.out("id -u; id -g", user="nobody").split() == ["65534", "65534"]
    assert box.out("id -u; id -g", user="1234:5678").split() == ["1234", "5678"]
    job = box.exec("true", user="nosuchuser")
    assert job["status"] == "failed" and "nosuchuser" in job["error"]
    for user in ("65536:0", "0:65536"):
        assert box.exec("true", user=user)["error"] == f"user {user}: the sandbox has no such ids"


def test_usage_is_billed(box):
    usage = box.exec("python3 -c 'sum(range(3000000))'")["usage"]
    assert usage["cpu_user_s"] > 0 and usage["max_rss_bytes"] > 1_000_000 and usage["wall_s"] > 0


def test_usage_is_the_commands_own(fresh):
    """Not the agent's memory, not the time of commands before; children and orphans count."""
    fresh.out("wc -c", stdin="x" * 20_000_000)
    assert fresh.exec(["/bin/true"])["usage"]["max_rss_bytes"] < 6_000_000
    busy = fresh.exec("timeout 10 python3 -c 'b = bytearray(50_000_000); sum(range(5_000_000))'")["usage"]
    assert busy["max_rss_bytes"] > 50_000_000 and busy["cpu_user_s"] + busy["cpu_sys_s"] > 0.02
    idle = fresh.exec("sleep 0.5")["usage"]
    assert idle["wall_s"] >= 0.5 and idle["cpu_user_s"] + idle["cpu_sys_s"] < 0.3
    orphan = fresh.exec("(setsid python3 -c 'sum(range(5_000_000))'; touch /tmp/done) & "
                        "until [ -e /tmp/done ]; do sleep 0.05; done")["usage"]
    assert orphan["cpu_user_s"] + orphan["cpu_sys_s"] > 0.02
    assert fresh.exec("no-such-program")["usage"]["wall_s"] > 0


# --- the truth about the end, and what a command starts with ---------------
@pytest.mark.parametrize("code", [124, 126, 127, 137, 143])
def test_b019_a_commands_own_exit_code_is_no_verdict(box, code):
    job = box.exec(f"exit {code}")
    assert (job["verdict"], job["exit_code"], job["signal"], job["status"]) == ("exited", code, None, "failed")


def test_b020_an_oom_kill_is_told_only_of_the_command_it_ended(server):
    small = server.create(memory="128Mi")
    job = small.exec("python3 -c 'b=bytearray(10**9)'; exit 0")
    assert (job["verdict"], job["exit_code"]) == ("exited", 0)
    job = small.exec("kill -9 $$")
    assert (job["verdict"], job["signal"]) == ("signaled", 9)
    job = small.exec("sh -c \"python3 -c 'b=bytearray(10**9)'\"; exit $?")
    assert (job["verdict"], job["exit_code"]) == ("oom_killed", 137)
    assert small.exec("exit 137")["verdict"] == "exited"
    small.delete()


def test_b020_what_an_oom_kill_leaves_is_ended_with_the_command(server):
    """It would take the memory of whatever comes next."""
    small = server.create(memory="64Mi")
    job = small.exec("sleep 600 & setsid sleep 600 & exec python3 -c 'b=bytearray(10**9)'")
    assert job["verdict"] == "oom_killed"
    assert small.exec("pgrep -xc sleep")["stdout"] == "0\n"
    small.exec("sleep 600 & exit 1")
    assert small.out("pgrep -xc sleep") == "1\n"
    small.delete()


def test_b012_a_timeout_is_told_only_of_our_own_timer(fresh):
    assert fresh.exec("timeout 0.2 sleep 60")["verdict"] == "exited"
    assert fresh.exec("timeout 60 sleep 60", timeout_seconds=1)["verdict"] == "timed_out"
    job = fresh.exec("sleep 60 & sleep 0.1; exit 124", timeout_seconds=30)
    assert (job["verdict"], job["exit_code"]) == ("exited", 124)


def test_b007_kills_in_one_lane_spare_commands_in_others(fresh):
    """Timed out commands in one lane, quick ones in others: their process groups and cgroups never meet."""
    with ThreadPoolExecutor(4) as pool:
        killed = pool.submit(lambda: [fresh.exec("setsid sleep 60 & sleep 60", lane="kill", timeout_seconds=0.1)["verdict"]
                                      for _ in range(10)])
        others = [pool.submit(lambda lane=lane: [fresh.exec("(sleep 0.01 &) ; sleep 0.02; exit 3", lane=lane)
                                                 for _ in range(25)]) for lane in ("a", "b", "c")]
        assert killed.result() == ["timed_out"] * 10
        for other in others:
            assert {(job["verdict"], job["exit_code"]) for job in other.result()} == {("exited", 3)}


@pytest.mark.parametrize("login_shell", [False, True])
def test_a_command_starts_clean(box, login_shell):
    """Dispositions, mask, session, priority, limits; nothing of the agent or of the server's start."""
    text = box.out("grep -E '^(Sig(Blk|Ign|Pnd)|ShdPnd)' /proc/self/status; umask; ulimit -c; nice; "
                   "cat /proc/self/oom_score_adj; read -r _ _ _ _ pgrp sid _ < /proc/self/stat; "
                   "[ $pgrp = $sid ] && echo session; ls /proc/self/fd | wc -l", login_shell=login_shell)
    lines = text.splitlines()
    assert [int(line.split()[1], 16) for line in lines[:4]] == [0, 0, 0, 0]
    assert lines[4:] == ["0022", "0", "0", "0", "session", "4"]


def test_b030_what_the_kernel_cannot_pass_is_told(box):
    largest = "x" * 131_071
    assert box.out(["/bin/sh", "-c", "echo ${#1} ${#2}", "sh", largest, largest]) == "131071 131071\n"
    job = box.exec(["/bin/echo", largest + "x"])
    assert (job["verdict"], job["exit_code"]) == ("never_started", 126) and "131071" in job["error"]
    job = box.exec("true", env={"BIG": largest})
    assert job["verdict"] == "never_started" and "environment variable BIG" in job["error"]
    job = box.exec(["/bin/echo"] + [largest] * 60)
    assert job["verdict"] == "never_started" and "together" in job["error"]
