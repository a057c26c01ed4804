"The two tools every table has: echo, and eval, which runs Lisp in the sandbox and may call any tool, itself included.
Must not know the door: a program's inner calls go through ctx.dispatch."

(require tools.macros [def-cognitive-tool])

(defn :async run [form ctx]
  "The sandbox is imported by the first program, so that listing the tools does not wait for it."
  (import tools.program [run-in-context])
  (await (run-in-context form ctx)))

(def-cognitive-tool echo
  "Return the text unchanged."
  :parameters [text {:type str  :doc "What to return"}]
  :examples   [(echo :text "hello")]
  :body       text)

(def-cognitive-tool eval
  "Run a Lisp (Hy) program in a sandbox and return its last value. Use it to compute. The other tools are functions in it."
  :parameters [form {:type form  :doc "The program"}]
  :examples   [(eval :form (* 2 (+ 3 4)))
               (eval :form (len (.splitlines (read-file :path "notes.txt"))))]
  :timeout    300
  :body       (await (run form ctx)))
