"Reminders and tasks: headlines of memory.org in the workspace, which people edit in Emacs.
Files are opened through ctx.workspace, headlines are read and written by tools/memory."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  datetime [date datetime]
  quoth.tools.call.call [ALLOW ask]
  quoth.tools.call.context [inside-workspace]
  quoth.tools.errors [ToolError ToolFailure])

;; * Helpers. Org is imported only for tasks: few calls need it.

(defn own-file [file ctx]
  "Guard: the agent may write in memory.org; any other file of the workspace needs approval."
  (setv inside (inside-workspace file))
  (cond
    (!= inside.kind "allow")
      inside
    (= file "memory.org")
      ALLOW
    True
      (ask f"it keeps tasks in {file}, not in memory.org")))

(defn now []
  (import datetime [UTC])
  (.now datetime UTC))

(defn by [call ctx]
  (import quoth.tools.memory.org-tasks [By])
  (By (now) ctx.user ctx.session (or call.key call.id)))

(defn changed [ctx file change]
  (import quoth.tools.memory.org-tasks [change-tasks])
  (setv result (change-tasks ctx.workspace change file ctx.say))
  (.effect ctx f"wrote:{file}")
  result)

(defn added [title when what reminder file call ctx]
  "Add a headline; WHEN is the text of its time, \"\" for none, and WHAT the name of that argument."
  (import quoth.tools.memory.due-times [in-words read-when])
  (setv who (by call ctx)
        remark "")
  (defn change [tasks]
    (nonlocal remark)
    (setv due None)
    (when (or when reminder)
      (setv [due remark] (read-when what when who.now tasks.zone)))
    (when (and reminder (not (isinstance due datetime)))
      (raise (ToolError f"{what} also needs a time of day, such as \"{(.isoformat due)} 09:00\".")))
    (setv [org id] (.add tasks title who due :reminder reminder))
    [org [id (if due f", {(in-words due who.now tasks.zone)}" "")]])
  (setv [id due] (changed ctx file change))
  (when remark
    (.say ctx remark))
  {"success" True
   "message" f"{(if reminder "Reminder set" "Task added")}: {id}{due}."
   "id" id})

(defn listed [file ctx]
  (import quoth.tools.memory.org-tasks [read-tasks]
          quoth.tools.memory.org-tasks [summary])
  (setv tasks (read-tasks ctx.workspace file)
        at (now))
  (for [fault tasks.faults]
    (.say ctx fault))
  {"success" True
   "message" (summary tasks tasks.open at)
   "tasks" (lfor task tasks.open (.shown tasks task at))})

(defn closed [words done file call ctx]
  "Close the task that WORDS name, or open it again."
  (import quoth.tools.memory.org-tasks [summary TaskFile])
  (setv who (by call ctx))
  (defn change [tasks]
    (setv task (.find tasks words :done (not done))
          same (= task.done done))
    [(.set-done tasks task done who) [task.title same]])
  (setv [title same] (changed ctx file change))
  {"success" True
   "message" f"{title} {(if same "was" "is")} {(if done "done" "open")}{(if same " already" "")}."})

(defn noted [words text file call ctx]
  (setv who (by call ctx))
  (defn change [tasks]
    (setv task (.find tasks words))
    [(.note tasks task text who) task.title])
  {"success" True
   "message" f"Noted at {(changed ctx file change)}."})

(defn must-have [operation name value]
  (when (not (.strip value))
    (raise (ToolFailure "invalid" f"{operation} needs :{name}."))))

(defn tracked [operation title due id note file call ctx]
  (setv words (or id title))
  (cond
    (= operation "add")  (must-have operation "title" title)
    (= operation "note") (do (must-have operation "id" words)
                             (must-have operation "note" (or note (if id title "")))))
  (cond
    (and due (!= operation "add"))
      (raise (ToolError f":due is only for operation add, not for {operation}."))
    (= operation "add")
      (added title due ":due" False file call ctx)
    (= operation "list")
      (listed file ctx)
    (= operation "note")
      (noted words (or note (if id title "")) file call ctx)
    True
      (closed words (= operation "done") file call ctx)))

;; * Tools

(def-cognitive-tool schedule-reminder
  "Set a reminder for the user at a time. It is stored in memory.org; the command quoth remind shows it then."
  :parameters [text {:type str   :doc "What to remind the user of"}
               at   {:type str   :doc "2030-12-01 09:00, 2030-12-01T09:00+01:00, in 2 hours, tomorrow 9:00"}
               file {:type path  :default "memory.org"  :hidden True}]
  :effects    [:memory]
  :free-text  True
  :asks-first True
  :guard      (own-file file ctx)
  :examples   [(schedule-reminder :text "Call the dentist" :at "tomorrow 9:00")]
  :body       (added text at ":at" True file call ctx))

(def-cognitive-tool track-task
  "Keep the user's tasks in memory.org: add, list the open ones, mark one done, reopen it, or add a note."
  :parameters [operation {:type str  :choices ["add" "list" "done" "reopen" "note"]}
               title     {:type str  :doc "What to do"  :default ""}
               due       {:type str  :doc "A day or time, such as 2030-12-01 or tomorrow 9:00"  :default ""}
               id        {:type str  :doc "Which task: its id, title or a word of it"  :default ""
                          :role :content}
               note      {:type str  :doc "Text of the note"  :default ""}
               file      {:type path  :default "memory.org"  :hidden True}]
  :effects    [:memory]
  :free-text  True
  :asks-first True
  :guard      (own-file file ctx)
  :examples   [(track-task :operation "add" :title "Pay the rent" :due "tomorrow")
               (track-task :operation "list")
               (track-task :operation "done" :id "pay-the-rent")]
  :body       (tracked operation title due id note file call ctx))
