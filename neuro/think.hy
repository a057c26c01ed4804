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
HOW TO WORK:
You know nothing of the files here: look before you answer, and never guess.
- If the task names a file, begin with read-file. To find out which files hold a word, use grep-search.
- To change a file, use edit-file; to make one, write-file.
- To compute, use eval; never compute in your head.
Reply with one call and nothing else; its result is the next message. Then make the next call, or answer.
When the results answer the task, reply in one plain sentence.

EXAMPLE:
Task: Which colour does a.txt name, and how many lines of b.txt hold it?
(read-file :path "a.txt")
Result: The colour is green.
(grep-search :pattern "green" :path "b.txt")
Result: 2 items
The colour is green, and 2 lines of b.txt hold it.
]])

(setv AFTER-RESULT
  "If you know it now, say it in one plain sentence. If not, make the next call.")

(setv NOW-ANSWER
  "Answer this in one plain sentence now, from the results you have.")

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

(defn :async think [messages backend table * [must-act False] [must-answer False] [without #()]
                    [max-tokens 1024] [on-text None]]
  "One turn of the model over MESSAGES, which grow by its reply.

  MUST-ACT forbids an answer before anything was looked at, MUST-ANSWER forbids calls, and WITHOUT names tools
  it may not use now; all three bind only a backend that takes a grammar, and are words in the messages for
  any other."
  (setv completion
        (await (ask-neuro messages backend
                          :grammar (grammar table :may-answer (not must-act)
                                                  :may-call (not must-answer)
                                                  :without without)
                          :max-tokens max-tokens
                          :on-text on-text)))
  (.append messages "assistant" completion.text)
  (Thought completion.text (read-reply completion.text (.names table)) completion.usage completion.finish))
