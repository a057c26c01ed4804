"Reading the data sources that the host has opened beside the workspace, through ctx.sources."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.builtin.files [some-lines]
  quoth.tools.errors [ToolFailure]
  quoth.tools.lisp.forms [CallForm])

(defn :async listed [name ctx]
  (when name
    (setv read (CallForm "sources" {"operation" "read"  "name" name}))
    (raise (ToolFailure "invalid" f"list takes no name; to read it: {read}.")))
  (lfor  source (await (.list-sources ctx.sources))
         {"name" source.name  "description" source.description}))

(defn :async part [name start limit ctx]
  (when (not (.strip name))
    (setv all (CallForm "sources" {"operation" "list"}))
    (raise (ToolFailure "invalid" f"read needs the name of a source; {all} lists them.")))
  (some-lines ctx name (await (.read-source ctx.sources name)) start limit))

(def-cognitive-tool sources
  "Read data that was opened for you beside the workspace: list names the sources; read shows a text, or the
  names of the files in a folder, each of which you can read."
  :parameters [operation {:choices ["list" "read"]  :doc "What to do"}
               name      {:type str  :doc "A source, or a file in it"  :default ""}
               start     {:type int  :doc "First line"  :default 1  :min 1}
               limit     {:type int  :doc "Maximum number of lines"  :default 2000  :min 1}]
  :effects    [:reads]
  :shown      False
  :free-text  True
  :examples   [(sources :operation "list")
               (sources :operation "read" :name "manual/install.org")]
  :body       (if (= operation "list")
                  (await (listed name ctx))
                  (await (part name start limit ctx))))
