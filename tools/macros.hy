"def-cognitive-tool and the macros built on it. expand.hy and define.py of tools/registry do the work."

(defmacro def-cognitive-tool [_hy-compiler [name None] [description None] #* options]
  "Define a tool and put it into the table.

  ::

      (def-cognitive-tool greet
        \"Greet a person.\"
        :parameters [who {:type str  :doc \"The person's name\"}]
        :body       (+ \"Hello, \" who))

  Only these options exist: :parameters :guard :changes :body, and OPTIONS of tools/registry/define.py. In
  :guard, :changes and :body the parameters are bound by name, and so are `call` and `ctx`. A guard returns
  True, False, (deny \"why\") or (ask \"why\"). :changes computes the changes of a call, to show to the person
  who is asked: it only reads, and returns [[path old-text new-text] …], with None for a missing file. With
  :ends-turn True a call that is ok ends the run, and its message is the reply. With :no-background True a
  call on another machine is stopped when its caller no longer waits. :asks-first True says that the body does
  nothing before it asks a person, so that it can begin again after a later answer."
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
  "Define a tool that sends one HTTP request and returns the JSON or text of the response.

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
