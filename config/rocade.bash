# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Completion of bash(1) for the programs of Rocade. The options are those that `PROGRAM --help` prints.

# _rocade_value HELP OPTION: the name of the option's value, such as FILE; empty if it has none
_rocade_value()
{
	[[ $2 =~ ^--?[a-zA-Z0-9-]+$ ]] || return 0
	sed -nE "s/^ +(-[a-zA-Z], )?$2 ([A-Z][A-Z0-9_:\[-]*).*/\2/p;T;q" <<<"$1"
}

# _rocade_operand HELP: sets operand to the number of the first word that is no option and no value
_rocade_operand()
{
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) operand=$((i + 1)) && return ;;
		-*) [ -z "$(_rocade_value "$1" "${COMP_WORDS[i]}")" ] || i=$((i + 1)) ;;
		*) operand=$i && return ;;
		esac
	done
	operand=$i
}

# Called by bash with the program, the word to complete and the word before it
_rocade()
{
	local help operand=0 word=$2
	COMPREPLY=()
	help=$("$1" --help 2>/dev/null) || return 0
	case $(_rocade_value "$help" "$3") in
	'') ;;
	FILE | PATH)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return 0
		;;
	UID)
		mapfile -t COMPREPLY < <(cut -d : -f 3 /etc/passwd | grep "^$word")
		return 0
		;;
	*) return 0 ;;
	esac
	if [ "${1##*/}" = rocade-run ]; then
		_rocade_operand "$help"
		if ((operand < COMP_CWORD)); then
			# The command's own completion, where bash-completion is loaded
			if declare -F _comp_command_offset >/dev/null; then
				_comp_command_offset "$operand"
			elif declare -F _command_offset >/dev/null; then
				_command_offset "$operand"
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$word")
			fi
			return 0
		fi
		if [[ $word != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$word")
			return 0
		fi
	fi
	if [ "${1##*/}" = rocade-faults ] && [[ $word != -* ]]; then
		if ((COMP_CWORD == 1)); then
			mapfile -t COMPREPLY < <(compgen -W "check explore replay shrink" -- "$word")
		else
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		fi
		return 0
	fi
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(sed -nE '
			s/^ +((-[a-zA-Z], )?--[a-z0-9-]+(, --[a-z0-9-]+)*).*/\1/; T
			s/,//g; p' <<<"$help")" -- "$word")
	fi
}

complete -F _rocade rocade-doctor rocade-dump rocade-faults rocade-perf rocade-run rocade-status rocade-testpmd \
	rocaded
