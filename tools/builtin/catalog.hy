"Looking tools up, for a belt that shows each of them with one line only (--belt search). It is loaded for
that belt alone: no other table has these tools. Must not read a table: what is known of tools comes from
ctx.catalog."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.errors [ToolError UnknownToolError])

(defn catalog-of [ctx]
  "The catalog of the host, or an error that says there is none."
  (when (is ctx.catalog None)
    (raise (ToolError "There is no catalog of tools here.")))
  ctx.catalog)

(def-cognitive-tool describe
  "Show one tool in full: what it does, its parameters, an example."
  :parameters [name {:type str  :doc "Name of the tool"}]
  :effects    [:reads]
  :free-text  True
  :examples   [(describe :name "describe")]
  :body       (try
                (.describe (catalog-of ctx) name)
                (except [error UnknownToolError]
                  (raise (ToolError (str error)) :from None))))

(def-cognitive-tool search-tools
  "Find tools for a purpose: one line for each that fits the words, the best first."
  :parameters [words {:type str  :doc "What the tool is to do"}
               limit {:type int  :doc "At most so many"  :default 10  :min 1  :max 50}]
  :effects    [:reads]
  :free-text  True
  :examples   [(search-tools :words "read a text file")]
  :body       (await (.search (catalog-of ctx) words limit)))
