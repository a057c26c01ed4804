"""Examples for the help of each command: two lines that can be typed as they are.

Knows no command; a test parses each line and sees that no command is without.
"""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, str]] = {
    "": ("quoth", 'quoth run "What is in this folder?"'),
    "run": ('quoth run "Which file is the longest?"', "quoth run - --model ollama:qwen3 --json < task.txt"),
    "chat": ("quoth chat", "quoth chat --gateway stdio --approvers ann"),
    "models": ("quoth models --check", "quoth models login openai"),
    "call": (
        "quoth call '(read-file :path \"notes.txt\")'",
        "quoth call '(word-count :text \"a b\")' --tools word-count.hy --json",
    ),
    "read": ("quoth read reply.txt", "quoth read --json < reply.txt"),
    "tools": ("quoth tools grep-search", "quoth tools test word-count.hy"),
    "belt": ("quoth belt", "quoth belt --view openai --json"),
    "eval": (
        "quoth eval '(+ 1 2)'",
        "quoth eval '(len (.split (read-file \"notes.txt\")))' --dry-run",
    ),
    "fly": ("quoth fly plan.org --check", "quoth fly plan.org --until Build"),
    "audit": ("quoth audit --since 2h", "quoth audit verify"),
    "policy": ("quoth policy check rules.hy", "quoth policy explain '(read-file \"notes.txt\")'"),
    "policy check": ("quoth policy check", "quoth policy check rules.hy --tools word-count.hy"),
    "policy explain": (
        'quoth policy explain \'(write-file :path "a.txt" :content "")\'',
        "quoth policy explain '(read-file \"a.txt\")' --user ben --policy rules.hy",
    ),
    "trust": ("quoth trust", "quoth trust ~/project"),
    "pending": ("quoth pending", "quoth pending hm4kq"),
    "approve": ("quoth approve hm4kq", "quoth approve plan.org --step build"),
    "deny": ('quoth deny hm4kq --why "not in src"', "quoth deny plan.org --step build"),
    "memory": ("quoth memory list", 'quoth memory search "when does the train leave"'),
    "memory list": ("quoth memory list", "quoth memory list --kind core --json"),
    "memory show": ("quoth memory show person", "quoth memory show person --history"),
    "memory search": ('quoth memory search "train"', 'quoth memory search "train" --since 2026-01-31'),
    "memory edit": (
        "quoth memory edit person",
        'quoth memory edit project --new --text "The release is in May."',
    ),
    "memory forget": ("quoth memory forget project", "quoth memory forget project notes --yes"),
    "memory export": ("quoth memory export memory.org", "quoth memory export --format json"),
    "memory import": ("quoth memory import memory.org", "quoth memory import memory.org --replace"),
    "memory status": ("quoth memory status", "quoth memory status --json"),
    "knowledge": ("quoth knowledge list", "quoth knowledge show trains"),
    "knowledge list": ("quoth knowledge list", "quoth knowledge list --kind claim"),
    "knowledge show": ("quoth knowledge show trains", "quoth knowledge show trains --json"),
    "knowledge forget": ("quoth knowledge forget trains", "quoth knowledge forget trains buses --yes"),
    "catalog": ("quoth catalog show", "quoth catalog publish --tools word-count.hy"),
    "catalog publish": (
        "quoth catalog publish --tools word-count.hy --redis redis://127.0.0.1",
        "quoth catalog publish --tools word-count.hy --allow word-count=ann,ben",
    ),
    "catalog show": ("quoth catalog show", "quoth catalog show word-count --json"),
    "catalog diff": ("quoth catalog diff", "quoth catalog diff --tools word-count.hy"),
    "catalog watch": ("quoth catalog watch", "quoth catalog watch --json"),
    "catalog key": ("quoth catalog key new", "quoth catalog key show"),
    "catalog dead": ("quoth catalog dead", "quoth catalog dead --json"),
    "catalog retry": (
        "quoth catalog retry 7f3a",
        "quoth catalog retry 7f3a --redis redis://127.0.0.1",
    ),
    "catalog drop": (
        "quoth catalog drop 7f3a",
        "quoth catalog drop 7f3a --redis redis://127.0.0.1",
    ),
    "remind": ("quoth remind", "quoth remind --watch --to phone --channel phone=inbox.txt"),
    "stats": ("quoth stats", "quoth stats --since 7d --json"),
    "sessions": ("quoth sessions", "quoth sessions --all --json"),
    "log": ("quoth log --last", "quoth log s1a2b3c4 --org > session.org"),
    "fork": ("quoth fork s1a2b3c4", "quoth fork s1a2b3c4 --at 12"),
    "export": ("quoth export s1a2b3c4 session.hy", "quoth export s1a2b3c4"),
    "import": ("quoth import session.hy", "quoth import session.hy --as copy"),
    "rm": ("quoth rm s1a2b3c4", "quoth rm s1a2b3c4 s5d6e7f8 --yes"),
    "resume": ("quoth resume", 'quoth resume s1a2b3c4 "And in French?"'),
    "replay": ("quoth replay --last", "quoth replay session.hy --live-tools"),
    "lift": ("quoth lift --last", "quoth lift s1a2b3c4 --output program.hy"),
    "worker": (
        "quoth worker --tools word-count.hy --redis redis://127.0.0.1",
        "quoth worker --tools word-count.hy --jobs 2 --health 8080",
    ),
    "doctor": ("quoth doctor", "quoth doctor --check --json"),
    "new": ("quoth new tool word-count", "quoth new plan release"),
    "completion": ('eval "$(quoth completion bash)"', "quoth completion fish"),
    "help": ("quoth help", "quoth help policy"),
}
