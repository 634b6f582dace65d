/* command_table.c - every command, by groups and use: what it is called, takes, does, and how it is used. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/command.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/spec.h"

#define OPTIONS(...)                                                                                               \
	(const struct option_spec[])                                                                               \
	{                                                                                                          \
		__VA_ARGS__,                                                                                       \
		{                                                                                                  \
			NULL, 0, NULL, NULL, NULL                                                                  \
		}                                                                                                  \
	}

#define STATUSES "pending unschedulable ready failed paused"

const struct command command_table[] = {
	{
		.group = "sandboxes",
		.name = "run",
		.words = "[OPTION]... IMAGE [--] COMMAND [ARGUMENT]...",
		.summary = "run a command in a sandbox of its own",
		.about = "Makes a sandbox from the image, runs the command in it, shows its output while it comes, "
			 "and removes\n"
			 "the sandbox. The exit status is the command's. \"default\" is the server's own image.\n"
			 "\n"
			 "The words behind the image are the command as they stand; no shell reads them, unless "
			 "with --shell.\n"
			 "Ctrl-C cancels it; a second one leaves at once. Whatever ends orchardctl, the sandbox "
			 "goes.\n"
			 "With --tty the command may be left out: then it is a shell.\n",
		.examples = "orchardctl run python:3.11-slim -- python3 -c 'print(6 * 7)'\n"
			    "orchardctl run default -c 'id; uname -a'\n"
			    "orchardctl run -t debian:12\n"
			    "orchardctl run -m 4Gi --cpu 4 --network --timeout 1h default -c 'pip install x && "
			    "pytest'\n"
			    "tar c . | orchardctl run -i default -- tar tv\n",
		.options = OPTIONS(SPEC_EXEC_OPTIONS, SPEC_SANDBOX_OPTIONS,
			{ "keep", OPT_KEEP, NULL, "leave the sandbox there", NULL }),
		.run = cmd_run,
		.word_kind = WORD_IMAGE,
	},
	{
		.name = "create",
		.words = "[OPTION]... [IMAGE]",
		.summary = "make a sandbox that stays",
		.about = "Makes a sandbox from the image (else \"default\"), waits until commands can run in it, "
			 "and prints its name.\n",
		.examples = "orchardctl create python:3.11-slim\n"
			    "box=$(orchardctl create --memory 512Mi --label run=7 --ttl 1h)\n"
			    "orchardctl create --id x1 --egress 10.1.2.0/24:443 -o json\n",
		.options = OPTIONS(SPEC_SANDBOX_OPTIONS,
			{ "env", 'e', "NAME[=VALUE]", "a variable of every command; may be repeated", NULL },
			{ "workdir", 'w', "DIR", "where commands start", NULL },
			{ "no-wait", OPT_NO_WAIT, NULL, "don't wait until it is ready", NULL }),
		.run = cmd_create,
		.word_kind = WORD_IMAGE,
	},
	{
		.name = "ls",
		.words = "[OPTION]...",
		.summary = "list sandboxes",
		.about = "Lists sandboxes, newest first. With --watch it goes on, and prints a row for each that "
			 "comes,\n"
			 "changes or goes, until it is interrupted.\n",
		.examples = "orchardctl ls\n"
			    "orchardctl ls --label run=7 --status ready -o name\n"
			    "orchardctl ls --watch\n",
		.options = OPTIONS({ "label", 'l', "NAME=VALUE", "only those with this label", NULL },
			{ "status", OPT_STATUS, "STATUS", "only those in this state", STATUSES },
			{ "limit", 'n', "NUMBER", "at most so many", NULL },
			{ "watch", 'w', NULL, "go on, and tell what changes", NULL },
			{ "interval", OPT_INTERVAL, "TIME", "how often to look with --watch; default 1s", NULL }),
		.run = cmd_ls,
	},
	{
		.name = "get",
		.words = "SANDBOX|JOB...",
		.summary = "show sandboxes and jobs in full",
		.about = "Shows all that is known of a sandbox, or of a job (an id like "
			 "0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77).\n",
		.examples = "orchardctl get x1\n"
			    "orchardctl get x1 -o json | jq .expires_at\n",
		.run = cmd_get,
		.word_kind = WORD_THINGS,
	},
	{
		.name = "update",
		.words = "SANDBOX... OPTION...",
		.summary = "change labels and life of sandboxes",
		.about = "Changes what is named and leaves the rest.\n",
		.examples = "orchardctl update x1 --ttl 4h\n"
			    "orchardctl update x1 x2 --label run=8 --remove-label old --idle-timeout 10m\n",
		.options = OPTIONS({ "label", 'l', "NAME=VALUE", "add or change a label; may be repeated", NULL },
			{ "remove-label", OPT_REMOVE_LABEL, "NAME", "take a label away; may be repeated", NULL },
			{ "ttl", OPT_TTL, "TIME", "it is removed after this time from now on", NULL },
			{ "idle-timeout", OPT_IDLE, "TIME", "it is removed after this time without use; 0: never",
				NULL }),
		.run = cmd_update,
		.word_kind = WORD_SANDBOXES,
	},
	{
		.name = "heartbeat",
		.words = "[OPTION]... SANDBOX...",
		.summary = "say that sandboxes are still needed",
		.about = "After its first heartbeat a sandbox is removed when for some time (180 s, as the server "
			 "is set) there is\n"
			 "neither another one nor use of it. With --every it goes on until it is interrupted.\n",
		.examples = "orchardctl heartbeat x1\n"
			    "orchardctl heartbeat x1 x2 --every 60s &\n",
		.options = OPTIONS({ "every", OPT_EVERY, "TIME", "again and again", NULL }),
		.run = cmd_heartbeat,
		.word_kind = WORD_SANDBOXES,
	},
	{
		.name = "rm",
		.words = "[OPTION]... SANDBOX... | --label NAME=VALUE | --all",
		.summary = "remove sandboxes",
		.about = "Removes sandboxes with all they hold, and prints their names. Commands that run in them "
			 "are ended.\n"
			 "On a terminal, --all asks before it begins.\n",
		.examples = "orchardctl rm x1 x2\n"
			    "orchardctl rm --label run=7\n"
			    "orchardctl rm --all --yes\n",
		.options = OPTIONS({ "label", 'l', "NAME=VALUE", "all with this label", NULL },
			{ "all", OPT_ALL, NULL, "all of them", NULL }, { "yes", 'y', NULL, "don't ask", NULL },
			{ "force", 'f', NULL, "one that is not there is fine", NULL }),
		.run = cmd_rm,
		.word_kind = WORD_SANDBOXES,
	},
	{
		.group = "commands and files in them",
		.name = "exec",
		.words = "[OPTION]... SANDBOX [--] COMMAND [ARGUMENT]...",
		.summary = "run a command in a sandbox",
		.about = "Runs a command, and shows its output while it comes: its stdout on stdout, its stderr on "
			 "stderr. The\n"
			 "exit status is the command's. The words are the command as they stand; no shell reads "
			 "them, unless\n"
			 "with --shell. Commands of a sandbox run one after the other, those of other lanes beside "
			 "them.\n"
			 "\n"
			 "Ctrl-C cancels the command; a second one leaves at once. A connection that breaks is "
			 "made again, and the\n"
			 "output goes on where it was. With -o json the job is printed when it has ended, with its "
			 "output.\n",
		.examples = "orchardctl exec x1 -- ls -l /\n"
			    "orchardctl exec x1 -w /srv -e LEVEL=debug --timeout 15m -c 'make test 2>&1 | tail'\n"
			    "orchardctl exec -i x1 -- python3 - <script.py\n"
			    "orchardctl exec -t x1 -- htop\n"
			    "job=$(orchardctl exec -d x1 -- sleep 60); orchardctl wait $job\n",
		.options = OPTIONS(SPEC_EXEC_OPTIONS),
		.run = cmd_exec,
		.word_kind = WORD_PROGRAM,
	},
	{
		.name = "shell",
		.words = "[OPTION]... SANDBOX [--] [COMMAND [ARGUMENT]...]",
		.summary = "a shell in a sandbox, at this terminal",
		.about = "Opens the user's shell, or COMMAND, at a terminal of the sandbox and shows it here: "
			 "keys, signals "
			 "and the\n"
			 "window's size go there. A connection that breaks is made anew, and the session goes on "
			 "where it was.\n"
			 "\n"
			 "At the beginning of a line:\n"
			 "  ~.   ends the session\n"
			 "  ~d   leaves it running, and tells how to come back\n"
			 "  ~^Z  suspends orchardctl\n"
			 "  ~~   sends one ~\n"
			 "  ~?   tells these\n"
			 "\n"
			 "The exit status is the program's.\n",
		.examples = "orchardctl shell x1\n"
			    "orchardctl shell x1 -w /srv -e LEVEL=debug -- python3\n"
			    "orchardctl shell x1 --attach 0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77\n",
		.options = OPTIONS({ "cwd", 'w', "DIR", "where it starts", NULL },
			{ "env", 'e', "NAME[=VALUE]", "a variable more; without a value: as it is here", NULL },
			{ "user", 'u', "USER", "another user of the sandbox, by name or number", NULL },
			{ "login-shell", OPT_LOGIN_SHELL, NULL, "a login shell, with all its start files", NULL },
			{ "attach", OPT_ATTACH, "SESSION", "go on with a session that was left", NULL },
			{ "reconnect", OPT_RECONNECT, "TIME",
				"how long to try after the connection broke; default 5m", NULL }),
		.run = cmd_shell,
		.word_kind = WORD_PROGRAM,
	},
	{
		.name = "cp",
		.words = "[OPTION]... FROM TO",
		.summary = "copy files and directories into and out of sandboxes",
		.about = "One of FROM and TO is SANDBOX:PATH, the other is here; a relative PATH counts from the "
			 "sandbox's "
			 "directory.\n"
			 "\n"
			 "Into a directory that is there, or a TO that ends with a slash, things are copied under "
			 "their own "
			 "names;\n"
			 "else TO is the new name. DIR/. stands for what is in a directory. A - is stdin or "
			 "stdout: the bytes "
			 "of a\n"
			 "file, or tar for a directory (and for a TO that is one).\n"
			 "\n"
			 "What is copied out is there whole or not at all; into a sandbox that goes for each file. "
			 "Links are "
			 "copied as\n"
			 "links. What comes out of a sandbox belongs to you; owners, set-id bits and devices are "
			 "not "
			 "taken over.\n",
		.examples = "orchardctl cp notes.txt x1:/srv/\n"
			    "orchardctl cp x1:/srv/results ./results\n"
			    "orchardctl cp project/. x1:/srv/project\n"
			    "orchardctl cp x1:/var/log/app.log - | grep error\n"
			    "orchardctl cp a:/data - | orchardctl cp - b:/data/\n",
		.options = OPTIONS({ "user", 'u', "USER", "with the rights of this user of the sandbox", NULL },
			{ "any-links", OPT_ANY_LINKS, NULL, "into: links that lead out of the directory, too",
				NULL },
			{ "skip-unreadable", OPT_SKIP_UNREADABLE, NULL, "out: leave out what may not be read",
				NULL }),
		.run = cmd_cp,
		.word_kind = WORD_PATHS,
	},
	{
		.name = "patch",
		.words = "[OPTION]... SANDBOX [FILE]",
		.summary = "apply a patch, whole or not at all",
		.about = "Applies a patch, as git diff and diff -u write it, from a file or from stdin. If any of "
			 "it does not\n"
			 "fit, nothing changes and the exit status is 1.\n",
		.examples = "orchardctl patch x1 fix.diff --cwd /srv/project\n"
			    "git diff | orchardctl patch x1 -w /srv/project\n",
		.options = OPTIONS({ "cwd", 'w', "DIR", "where its names count from", NULL },
			{ "user", 'u', "USER", "name or number; else the image's", NULL },
			{ "timeout", OPT_TIMEOUT, "TIME", "then it is taken back; default 30s", NULL },
			{ "lane", OPT_LANE, "NAME", "beside the commands of other lanes", NULL }),
		.run = cmd_patch,
		.word_kind = WORD_PATCH,
	},
	{
		.name = "jobs",
		.words = "[OPTION]... SANDBOX",
		.summary = "list commands of a sandbox",
		.about = "Lists what a sandbox has run and is running, newest first.\n",
		.examples = "orchardctl jobs x1\n"
			    "orchardctl jobs x1 -o json | jq '.[] | select(.exit_code != 0)'\n",
		.options = OPTIONS({ "limit", 'n', "NUMBER", "at most so many; 1 to 100", NULL }),
		.run = cmd_jobs,
		.word_kind = WORD_SANDBOX,
	},
	{
		.name = "logs",
		.words = "[OPTION]... JOB|SANDBOX",
		.summary = "print the output of a command",
		.about = "Prints what a job has written: its stdout on stdout, its stderr on stderr, byte for "
			 "byte. A sandbox\n"
			 "stands for its newest job. With --follow it goes on until the job ends.\n",
		.examples = "orchardctl logs 0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77\n"
			    "orchardctl logs -f x1\n"
			    "orchardctl logs x1 --stream stderr --offset 1048576\n",
		.options = OPTIONS({ "follow", 'f', NULL, "go on until it ends", NULL },
			{ "stream", OPT_STREAM, "STREAM", "only stdout, or only stderr", "stdout stderr" },
			{ "offset", OPT_OFFSET, "BYTES", "from this byte on", NULL }),
		.run = cmd_logs,
		.word_kind = WORD_THING,
	},
	{
		.name = "wait",
		.words = "[OPTION]... JOB|SANDBOX...",
		.summary = "wait until a command has ended, or a sandbox is ready",
		.about = "Waits until jobs have ended, and exits as the first that did not succeed; or until "
			 "sandboxes are ready.\n",
		.examples = "orchardctl wait 0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77 --timeout 10m\n"
			    "orchardctl wait x1 x2 && echo ready\n",
		.options = OPTIONS(
			{ "timeout", OPT_TIMEOUT, "TIME", "at most so long for each; then exit 1", NULL },
			{ "sandbox", OPT_SANDBOX, NULL, "these are sandboxes, also if named like jobs", NULL }),
		.run = cmd_wait,
		.word_kind = WORD_THINGS,
	},
	{
		.name = "cancel",
		.words = "JOB...",
		.summary = "end commands",
		.about = "Ends jobs, with everything they started. One that has ended stays as it is.\n",
		.examples = "orchardctl cancel 0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77\n"
			    "orchardctl jobs x1 -q | xargs orchardctl cancel\n",
		.run = cmd_cancel,
		.word_kind = WORD_JOBS,
	},
	{
		.group = "the server",
		.name = "top",
		.words = "[OPTION]...",
		.summary = "what sandboxes use, live",
		.about = "Shows processors, memory, processes and disk of sandboxes, at most the 200 newest, again "
			 "and again "
			 "until it\n"
			 "is interrupted. CPU % counts in processors: 200 are two. What a host can't tell is -.\n"
			 "Without a terminal, or with -o, each look is a table of its own; json is one line for "
			 "each.\n",
		.examples = "orchardctl top\n"
			    "orchardctl top --label run=7 --sort memory\n"
			    "orchardctl top -n 1 -o json | jq '.[].memory_bytes'\n",
		.options = OPTIONS({ "label", 'l', "NAME=VALUE", "only those with this label", NULL },
			{ "sort", OPT_SORT, "BY", "cpu (default), memory, disk, pids or name",
				"cpu memory disk pids name" },
			{ "interval", OPT_INTERVAL, "TIME", "how often to look; default 2s", NULL },
			{ "count", 'n', "NUMBER", "end after so many tables", NULL }),
		.run = cmd_top,
	},
	{
		.name = "resources",
		.words = "",
		.summary = "show what there is, and what is asked of it",
		.about =
			"Shows CPUs and memory of each node and of all together, and what sandboxes ask of them.\n",
		.examples = "orchardctl resources\n"
			    "orchardctl resources -o json | jq .available\n",
		.run = cmd_resources,
	},
	{
		.name = "doctor",
		.words = "[OPTION]...",
		.summary = "what does not work, and what mends it",
		.about = "Looks at the configuration here, at the server, its driver, isolation and processes. "
			 "When the server is on "
			 "this\nhost also at its settings, and at what these want: the kernel, cgroups and images; "
			 "or a cluster and the "
			 "rights\nthere; and Redis. Each line is ok, warn or FAIL, with the command that mends it "
			 "below; the exit status is "
			 "1 when\nsomething failed. With -q only what is not ok.\n",
		.examples = "orchardctl doctor\n"
			    "orchardctl doctor --try\n"
			    "kubectl -n orchard exec statefulset/orchard -- orchardctl doctor --host\n"
			    "orchardctl doctor -o json | jq '.[] | select(.result == \"fail\")'\n",
		.options = OPTIONS(
			{ "try", OPT_TRY, NULL, "also make a sandbox, run a command in it, and remove it", NULL },
			{ "host", OPT_HOST, NULL, "look at this host even if the server seems to be elsewhere",
				NULL },
			{ "no-host", OPT_NO_HOST, NULL, "do not look at this host, as at this end of a tunnel",
				NULL },
			{ "conf", 'c', "FILE", "the server's settings; default the one orchardd reads", NULL }),
		.run = cmd_doctor,
	},
	{
		.name = "version",
		.words = "[--client]",
		.summary = "versions of orchardctl and the server",
		.about = "Prints the version of orchardctl, and of the server.\n",
		.examples = "orchardctl version\n"
			    "orchardctl version --client -q\n",
		.options = OPTIONS({ "client", OPT_CLIENT, NULL, "orchardctl only; asks no server", NULL }),
		.run = cmd_version,
	},
	{
		.group = "orchardctl itself",
		.name = "config",
		.words = "VERB [NAME] [OPTION]...",
		.summary = "which servers there are, and which is used",
		.about = "A context is a server with its key, by name. The verbs:\n"
			 "\n"
			 "  get-contexts     lists them; * is in use\n"
			 "  current-context  prints the one in use\n"
			 "  use-context      uses this one from now on\n"
			 "  set-context      makes or changes one: --server, --api-key or --api-key-file, "
			 "--ca-file\n"
			 "  delete-context   forgets one\n"
			 "  view             prints the file, without keys\n"
			 "\n"
			 "They are kept in ~/.config/orchard/config.json, or where ORCHARD_CONFIG says, which only "
			 "its owner\n"
			 "may read. SANDBOX_BASE_URL and SANDBOX_API_KEY win over the file, options win over both. "
			 "A key\n"
			 "of the file is sent to its own server only.\n",
		.examples = "orchardctl config set-context lab --server http://lab:8000 --api-key-file key.txt\n"
			    "sudo cat /var/lib/orchard/api-key | orchardctl config set-context here --server "
			    "http://localhost:8000 --api-key-file -\n"
			    "orchardctl config use-context lab\n"
			    "orchardctl --context here ls\n",
		.options = OPTIONS(
			{ "api-key-file", OPT_API_KEY_FILE, "FILE", "the key, from a file; -: from stdin", NULL },
			{ "ca-file", OPT_CA_FILE, "FILE", "certificates that https servers are checked by", NULL },
			{ "raw", OPT_RAW, NULL, "view: with the keys", NULL }),
		.run = cmd_config,
		.word_kind = WORD_CONFIG,
	},
	{
		.name = "completion",
		.words = "bash|zsh|fish",
		.summary = "print what a shell needs to complete",
		.about = "Prints a script that makes bash, zsh or fish complete commands, options, and the names "
			 "of sandboxes.\n"
			 "\"make install\" puts them where these shells look.\n",
		.examples = "source <(orchardctl completion bash)\n"
			    "orchardctl completion zsh >~/.zfunc/_orchardctl\n"
			    "orchardctl completion fish | source\n",
		.run = cmd_completion,
		.word_kind = WORD_SHELL,
	},
	{
		.name = "help",
		.words = "[COMMAND]",
		.summary = "tell how orchardctl, or a command, is used",
		.about = "Prints what --help prints.\n",
		.examples = "orchardctl help\n"
			    "orchardctl help run\n",
		.run = cmd_help,
		.word_kind = WORD_COMMAND,
	},
	{
		.name = "__complete",
		.words = "WORD...",
		.summary = "what the last word may be",
		.about = "For the scripts of completion: the last word is being typed. Each line is a word that it "
			 "may become, "
			 "a tab\nand what that is; \":files\" stands for the files here.\n",
		.examples = "orchardctl __complete cp x1:/etc/\n",
		.run = cmd_complete,
		.hidden = true,
	},
	{
		.name = "man",
		.words = "",
		.summary = "print the man page",
		.about = "Prints orchardctl(1) in man(7).\n",
		.examples = "orchardctl man | man -l -\n",
		.run = cmd_man,
		.hidden = true,
	},
	{ .name = NULL },
};

const struct command *
command_find(const char *name)
{
	for (const struct command *command = command_table; command->name != NULL; command++)
		if (strcmp(command->name, name) == 0)
			return command;
	return NULL;
}
