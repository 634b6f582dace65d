/*
 * cmd_completion.c - completion: the scripts of shells. They know nothing: what a word may become says __complete.
 *
 * A word that ends in "/", ":" or "=" is no whole one, so no blank goes behind it.
 */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/args.h"
#include "orchardctl/commands/commands.h"

#include <stdio.h>

/*
 * bash 4 and later; needs nothing of the package bash-completion. bash breaks words at ":" and "=": they are put together
 * where no blank is between them, and what stands before the last break is not to be given back.
 */
static const char bash[] =
	"# bash completion for orchardctl: source <(orchardctl completion bash)\n"
	"_orchardctl() {\n"
	"\tlocal line=${COMP_LINE:0:COMP_POINT} words=(\"\") word cur kept= lines=() "
	"breaks=${COMP_WORDBREAKS//[^:=]/} i n=0\n"
	"\tfor ((i = 0; i <= COMP_CWORD; i++)); do\n"
	"\t\tword=${COMP_WORDS[i]}\n"
	"\t\t[[ $i -eq 0 || $line != [[:blank:]]* ]] || words[++n]=\n"
	"\t\tline=${line#\"${line%%[![:blank:]]*}\"}\n"
	"\t\t[[ ${#word} -le ${#line} ]] || word=$line\n"
	"\t\twords[n]+=$word\n"
	"\t\tline=${line#\"$word\"}\n"
	"\tdone\n"
	"\tcur=${words[n]}\n"
	"\twords=(\"${words[@]//\\\\/}\")\n"
	"\twords[n]=${words[n]#[\\'\\\"]}\n"
	"\t[[ -z $breaks || $cur == [\\'\\\"]* ]] || kept=${words[n]%\"${words[n]##*[$breaks]}\"}\n"
	"\tmapfile -t lines < <(orchardctl __complete \"${words[@]:1}\" 2>/dev/null)\n"
	"\tCOMPREPLY=()\n"
	"\tfor word in \"${lines[@]}\"; do\n"
	"\t\tif [[ $word == :files ]]; then\n"
	"\t\t\twhile IFS= read -r word; do\n"
	"\t\t\t\t[[ ! -d ${word/#~/$HOME} ]] || word=$word/\n"
	"\t\t\t\tCOMPREPLY+=(\"$word\")\n"
	"\t\t\tdone < <(compgen -f -- \"${words[n]#\"$kept\"}\")\n"
	"\t\telse\n"
	"\t\t\tword=${word%%$'\\t'*}\n"
	"\t\t\tCOMPREPLY+=(\"${word#\"$kept\"}\")\n"
	"\t\tfi\n"
	"\tdone\n"
	"\tif [[ $cur != [\\'\\\"]* ]]; then\n"
	"\t\tfor i in \"${!COMPREPLY[@]}\"; do\n"
	"\t\t\tprintf -v word %q \"${COMPREPLY[i]}\"\n"
	"\t\t\t[[ ${COMPREPLY[i]} == [~]* ]] || COMPREPLY[i]=$word\n"
	"\t\tdone\n"
	"\tfi\n"
	"\t[[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *[/:=] ]] || compopt -o nospace 2>/dev/null\n"
	"\treturn 0\n"
	"}\n"
	"complete -F _orchardctl orchardctl\n";

static const char zsh[] =
	"#compdef orchardctl\n"
	"# zsh completion for orchardctl: source <(orchardctl completion zsh)\n"
	"_orchardctl() {\n"
	"\tlocal -a lines whole open\n"
	"\tlocal line word files=\n"
	"\tlines=(${(f)\"$(orchardctl __complete \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)\"})\n"
	"\tfor line in $lines; do\n"
	"\t\t[[ $line != :files ]] || { files=1; continue; }\n"
	"\t\tword=${line%%$'\\t'*}\n"
	"\t\tline=${word//:/\\\\:}${${line#$word}/#$'\\t'/:}\n"
	"\t\tif [[ $word == *[/:=] ]]; then open+=(\"$line\"); else whole+=(\"$line\"); fi\n"
	"\tdone\n"
	"\t(( ! $#whole )) || _describe -V word whole\n"
	"\t(( ! $#open )) || _describe -V word open -S ''\n"
	"\t[[ -z $files ]] || _files\n"
	"}\n"
	"if [[ $funcstack[1] == _orchardctl ]]; then _orchardctl \"$@\"; else compdef _orchardctl orchardctl; fi\n";

/* Files are fish's own business, which knows tildes and quotes. */
static const char fish[] =
	"# fish completion for orchardctl: orchardctl completion fish | source\n"
	"function __orchardctl_complete\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l typed (commandline -ct | string unescape; or commandline -ct | string trim -l -c '\\'\"')\n"
	"\ttest -n \"$typed\"; or set typed ''\n"
	"\torchardctl __complete $words[2..] \"$typed\" 2>/dev/null\n"
	"end\n"
	"complete -c orchardctl -k -f -a '(__orchardctl_complete | string match -v :files)'\n"
	"complete -c orchardctl -n '__orchardctl_complete | string match -q :files' -F\n";

int
cmd_completion(struct ctl *ctl, int argc, char **argv)
{
	static const struct {
		const char *shell, *script;
	} shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
	struct args args;
	int code;

	args_init(&args, ctl, argc, argv);
	code = args_next(&args);
	if (code == ARG_STOP)
		return args.status;
	if (code == ARG_END)
		return args_fail(&args, "for which shell: bash, zsh or fish?");
	for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
		if (strcmp(args.value, shells[i].shell) == 0) {
			fputs(shells[i].script, stdout);
			return CTL_OK;
		}
	}
	return args_fail(&args, "there is none for \"%s\", only for bash, zsh and fish", args.value);
}
