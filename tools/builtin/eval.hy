"The two tools that every table has: echo, and eval, which runs Lisp in the sandbox and may call any tool.
A program's inner calls go through ctx.dispatch."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
  ; In all families only at compile time: at run time require searches the stack, 10 ms a file.

(defn :async run [form dry-run ctx call]
  "The sandbox is imported by the first program, so that listing the tools does not wait for it."
  (import quoth.tools.builtin.eval_body [look-in-context run-in-context])
  (if dry-run
      (await (look-in-context form ctx call dry-run))
      (await (run-in-context form ctx call))))

(def-cognitive-tool echo
  "Return the text unchanged. Only for tests."
  :parameters [text {:type str  :doc "What to return"}]
  :shown      False
  :examples   [(echo :text "hello")]
  :body       text)

(def-cognitive-tool eval
  "Compute with values you have seen: run a Lisp program (Hy), get its last value. The operator comes first:
  2 + 3 * 4 is (+ 2 (* 3 4)). The other tools are functions in it."
  :parameters [form    {:type form  :doc "The program"}
               dry-run {:type (| bool str)  :default False  :hidden True
                        :doc "True: only show the calls it would make; \"pure\": also without reading"}]
  :free-text  True
  :examples   [(eval :form (+ (* 12 3) 7))
               (eval :form (sum [4 5 6]))]
  :timeout    1800
  :body       (await (run form dry-run ctx call)))
