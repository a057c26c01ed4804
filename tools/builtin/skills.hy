"Reading skills: guides for one kind of task, of the user and of a trusted workspace.
Nothing of a skill runs here: shell runs its scripts, under the rules."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.errors [ToolError did-you-mean no-such]
  quoth.tools.lisp.forms [CallForm]
  quoth.tools.text [file-name])

(defn listed [skills ctx]
  (for [fault skills.faults]
    (.say ctx fault))
  (lfor  skill (.values skills.known)
         {"name" skill.name  "description" skill.description}))

(defn chosen [skills name]
  "The skill of that name. Raises ToolError that says why a skill is invalid, or names the nearest."
  (when (in name skills.known)
    (return (get skills.known name)))
  (setv why (next (gfor  fault skills.faults
                         :if (or (in f"/{name} " fault) (in f"/{name}/" fault))
                         fault)
                  None))
  (when why
    (raise (ToolError why)))
  (raise (ToolError (no-such "skill" name skills.known))))

(defn guide [skill ctx]
  "The guide; a message beside it says how to read its other files."
  (setv others (lfor  file skill.files  :if (!= file "SKILL.md")  file)
        read (when others
               (CallForm "skill" {"name" skill.name  "file" (get others 0)})))
  (when others
    (.say ctx (+ f"Its files in {skill.folder}: {(.join ", " (map file-name (cut others 0 20)))}"
                 (if (> (len others) 20)  f" and {(- (len others) 20)} more"  "")
                 f". Read one with {read}; run one only with shell.")))
  skill.guide)

(defn part [skill file ctx]
  (setv data (.get skill.files file))
  (when (is data None)
    (setv hint (or (did-you-mean file skill.files)
                   f" It has {(.join ", " (map file-name (cut (list skill.files) 0 20)))}."))
    (raise (ToolError f"The skill {skill.name} has no file {file}.{hint}")))
  (when (in b"\0" data)
    (raise (ToolError f"{file} is a binary file of {(len data)} bytes.")))
  (.decode data "utf-8" "replace"))

(def-cognitive-tool skill
  "Read a skill, a guide for one kind of task; without a name, list them."
  :parameters [name {:type str  :doc "The skill"  :default ""}
               file {:type str  :doc "A file of it"  :default ""}]
  :effects    [:reads]
  :shown      False
  :free-text  True
  :examples   [(skill :name "release-notes")]
  :body       (do
                (import quoth.tools.knowledge.skills [load-skills])  ; here: few have skills
                (setv skills (load-skills ctx.workspace.home))
                (cond
                  (not name)  (listed skills ctx)
                  file        (part (chosen skills name) file ctx)
                  True        (guide (chosen skills name) ctx))))
