# Completion of sidebus for bash. Load it with: source <(sidebus completion bash)
_sidebus() {
  local current="${COMP_WORDS[COMP_CWORD]}"
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [ "${COMPREPLY[0]}" = ":file" ]; then
    [ "$current" = "=" ] && current=""
    compopt -o filenames 2>/dev/null # quotes spaces, and goes on after the name of a folder
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _sidebus sidebus
