"""quoth completion: the scripts complete in the shells they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from words import files, quoth

# What is typed, and the words that are offered, in any order.
OFFERED = {
    "quoth mem": "memory",
    "quoth memory ex": "export",
    "quoth --yes memory s": "search show status",
    "quoth fly --ch": "--channel --check",
    "quoth fly pl": "plan.org",
    "quoth run --tools b": "b.hy",
    "quoth run --belt ": "few full search",
    "quoth --belt f": "few full",
    "quoth trust f": "folder",
    "quoth new ": "bridge plan policy tool",
    "quoth run --max-steps ": "",
}
BASH = """
complete -p quoth > /dev/null || exit 1
while IFS= read -r line; do
  COMP_WORDS=($line); [[ $line != *' ' ]] || COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _shtab_quoth 2> /dev/null
  echo $(printf '%s\\n' "${COMPREPLY[@]}" | sort)
done
"""


def test_bash_completes_commands_options_and_files(tmp_path: Path) -> None:
    here = files(tmp_path / "here", {"plan.org": "", "b.hy": "", "folder/x": ""})
    script = quoth("completion", "bash", cwd=here).out
    lines = "".join(f"{line}\n" for line in OFFERED)
    said = subprocess.run(
        ["bash", "--norc", "-c", script + BASH], input=lines, cwd=here, text=True, capture_output=True
    )
    assert dict(zip(OFFERED, said.stdout.split("\n"), strict=False)) == OFFERED


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_can_read_their_scripts(shell: str, tmp_path: Path) -> None:
    said = quoth("completion", shell, cwd=tmp_path)
    assert "knowledge" in said.out
    if found := shutil.which(shell):  # they are not on every machine; bash is
        (tmp_path / "script").write_text(said.out)
        assert subprocess.run([found, "-n", "script"], cwd=tmp_path).returncode == 0
