"def-cognitive-tool and the macros built on it: thin, the work is in expand.hy and define.py of
tools/registry. This file must not know what a door, a model or a loop is."

(defmacro def-cognitive-tool [_hy-compiler [name None] [description None] #* options]
  "Define a tool and put it into the table.

  ::

      (def-cognitive-tool greet
        \"Greet somebody.\"
        :parameters [who {:type str  :doc \"Whom\"}]
        :body       (+ \"Hello, \" who))

  Options are closed: :parameters :guard :changes :body, and OPTIONS of tools/registry/define.py. In :guard,
  :changes and :body the parameters are bound by name, and `call` and `ctx` too. A guard returns True, False,
  (deny \"why\") or (ask \"why\"). :changes tells a person who is asked what a call would change: it only
  reads, and gives [[path old-text new-text] …], None for a file that is not there. With :ends-turn True a
  call that is ok ends the run, and what it says is the reply; with :no-background True a call on another
  machine is stopped when nobody waits for it any more. :asks-first True says that the body does nothing
  before it asks a person, so that it may begin again after an answer that came later."
  (import quoth.tools.registry.expand [expand-tool])
  (expand-tool _hy-compiler name description options))

(defmacro def-shell-tool [_hy-compiler [name None] [description None] #* options]
  "Define a tool that runs one program by its argument vector, never through a shell.

  ::

      (def-shell-tool git-log
        \"Show the last commits.\"
        :parameters [count {:type int  :default 5  :min 1  :max 100}]
        :argv       [\"git\" \"log\" \"--oneline\" \"-n\" count])"
  (import quoth.tools.registry.expand [expand-shell-tool])
  (setv form (expand-shell-tool _hy-compiler name description options))
  `(do
     (require quoth.tools.macros [def-cognitive-tool])
     ~form))

(defmacro def-http-tool [_hy-compiler [name None] [description None] #* options]
  "Define a tool that makes one HTTP request and returns its JSON or text.

  ::

      (def-http-tool issue
        \"Read an issue of the tracker.\"
        :parameters [number {:type int}]
        :url        f\"https://tracker.example/api/issues/{number}\")"
  (import quoth.tools.registry.expand [expand-http-tool])
  (setv form (expand-http-tool _hy-compiler name description options))
  `(do
     (require quoth.tools.macros [def-cognitive-tool])
     ~form))
