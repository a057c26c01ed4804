"think: show the model the belt and what happened so far, and read the forms in its answer.
Must not know the door: it runs nothing. Belt first, then the task, then history, append-only."

(import
  dataclasses [dataclass]
  neuro.backends.base [Messages Usage]
  neuro.belt [belt]
  neuro.grammar [grammar]
  neuro.reader [Reading read-reply])

;; * What the model is told

(setv RULES #[[
To use a tool, reply with its form and nothing else; you then get its result. Never make up a result.
Paths are relative to the working folder. Compute with eval, never in your head.
When you know the answer, reply in plain words, without parentheses at the start.
]])

(setv AFTER-RESULT
  "If this answers the task, answer in plain words now. If not, make the next call.")

(defclass [(dataclass :frozen True)] Thought []
  "A reply: its text, the calls, text and faults read from it, and the tokens it cost."
  #^ str text
  #^ Reading reading
  #^ Usage usage
  (setv #^ str finish "stop"))

;; * Asking

(defn begin-conversation [table * [view "lisp"] [rules RULES]]
  "Messages that open with the belt; the task and all that follows is appended."
  (setv messages (Messages))
  (.append messages "system" (+ (belt table view) (.rstrip rules)))
  messages)

(defn :async ask-neuro [messages backend * [grammar None] [max-tokens 1024] [on-text None]]
  "The model's completion of MESSAGES; raises ModelError with a sentence."
  (await (.complete backend messages
                    :grammar (when backend.takes-grammar grammar)
                    :max-tokens max-tokens
                    :on-text on-text)))

(defn :async think [messages backend table * [must-act False] [must-answer False] [max-tokens 1024] [on-text None]]
  "One turn of the model over MESSAGES, which grow by its reply.

  MUST-ACT forbids an answer before anything was looked at, MUST-ANSWER forbids calls; both bind only a backend
  that takes a grammar, and are words in the prompt for any other."
  (setv completion
        (await (ask-neuro messages backend
                          :grammar (grammar table :may-answer (not must-act) :may-call (not must-answer))
                          :max-tokens max-tokens
                          :on-text on-text)))
  (.append messages "assistant" completion.text)
  (Thought completion.text (read-reply completion.text (.names table)) completion.usage completion.finish))
