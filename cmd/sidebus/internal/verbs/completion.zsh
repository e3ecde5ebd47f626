#compdef sidebus
# Completion of sidebus for zsh. Save it as _sidebus in a folder of $fpath.
_sidebus() {
  local -a candidates
  candidates=(${(f)"$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  [[ "$PREFIX" = --*=* ]] && compset -P '*=' # of --flag=value, only the value is completed
  if [ "${candidates[1]}" = ":file" ]; then
    _files
  else
    compadd -a candidates
  fi
}
if [ "${funcstack[1]}" = "_sidebus" ]; then
  _sidebus "$@"
else
  compdef _sidebus sidebus
fi
