#!/bin/sh
# tools/leg.sh UV FOLDER VERSION ARGUMENTS...: a fresh environment of that Python, and `uv pip install ARGUMENTS` in it.
#
# That Python is the one on the path or of pyenv; else the one that uv downloads, which takes more than a package index;
# else $PYTHON (python3) takes its place, and a line says so.
set -eu
uv=$1 folder=$2 version=$3 here=${PYTHON:-python3} found=
shift 3

for python in "python$version" "$here" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
  if [ -z "$found" ]; then
    found=$("$python" -c "import sys; sys.version_info[:2] == (${version%.*}, ${version#*.}) and print(sys.executable)" 2>/dev/null) || found=
  fi
done
if [ -n "$found" ]; then
  "$uv" venv --quiet --clear --python "$found" "$folder"
elif ! UV_HTTP_RETRIES=1 UV_HTTP_TIMEOUT=20 "$uv" venv --quiet --clear --managed-python --python "$version" "$folder" 2>/dev/null; then
  echo "NOT ON PYTHON $version, which is not here and cannot be downloaded, but on $("$here" --version)"
  "$uv" venv --quiet --clear --python "$("$here" -c 'import sys; print(sys.executable)')" "$folder"
fi
"$uv" pip install --quiet --python "$folder/bin/python" "$@"
echo "$folder: $("$folder/bin/python" --version)" $("$uv" pip freeze --quiet --python "$folder/bin/python" |
  grep -E '^(numpy|scipy|scikit-learn|pandas|pytest)=')
