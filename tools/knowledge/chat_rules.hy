;; The shipped rules for the knowledge tools in a chat, where no person at a terminal can be asked: a policy
;; of agents with a knowledge base. They allow only these five tools, and only to a model's replies in a chat.
;; `quoth policy explain` shows them. Your own rules can be stricter: (ask (claim)).

(allow (research)  (route "chat"))
(allow (source)    (route "chat"))
(allow (claim)     (route "chat"))
(allow (learning)  (route "chat"))
(allow (summarize) (route "chat"))
