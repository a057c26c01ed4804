;;; quoth.el --- An agent whose every action is a form  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The quoth authors

;; Author: The quoth authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; An interface to the command quoth, an agent that calls tools under your
;; rules.  All commands work from any file of a project:
;;
;; - `quoth-send' sends the region or the paragraph; the answer streams in.
;; - `quoth-menu' chooses model, session, rules and plan mode.
;; - `quoth-pending' lists the calls that wait for you, and decides them.
;; - `quoth-fly' flies a plan, `quoth-log' shows a session as Org,
;;   `quoth-undo' takes back the file changes of a session.
;; - `quoth-waits-mode' shows in the mode line how many requests wait.
;; - `quoth-flymake-setup' marks mistakes in plans and rules.
;; - `quoth-agenda' shows the tasks of a project in Org's agenda.
;;
;; The file ob-quoth.el runs blocks of Org Babel.  Every command runs quoth
;; beside Emacs and never waits for it.  No text of a model meets a shell or
;; the reader of Emacs Lisp.

;;; Code:

(require 'compile)
(require 'eieio)
(require 'flymake)
(require 'iso8601)
(require 'json)
(require 'org)
(require 'org-agenda)
(require 'seq)
(require 'subr-x)
(require 'tabulated-list)
(require 'transient)

(defgroup quoth nil "An agent whose every action is a form."
  :group 'tools :prefix "quoth-")

(defcustom quoth-command '("quoth")
  "The program and the options that come before its command."
  :type '(repeat string))

(defcustom quoth-model nil
  "The model to ask, such as \"openai:NAME\"; nil means the default of quoth."
  :type '(choice (const :tag "The default of quoth" nil) string))

(defcustom quoth-models '("local" "local-small" "openai:" "anthropic:" "ollama:")
  "The models, or their beginnings, that the menu completes."
  :type '(repeat string))

(defcustom quoth-rules nil
  "A file of rules to add to yours and the project's, or nil."
  :type '(choice (const :tag "None" nil) file))

(defcustom quoth-plan nil
  "Non-nil means plan mode: other calls than reads become steps of a plan."
  :type 'boolean)

(defcustom quoth-waits-interval 30
  "Seconds between two looks at what waits, with `quoth-waits-mode'."
  :type 'number)

(defvar-local quoth-session nil
  "The session of this buffer; nil means that the next task begins one.")

;;; The command

(defvar quoth--running nil "Processes of quoth whose end is not handled yet.")

(defun quoth--root (&optional folder)
  "The project's root for FOLDER or `default-directory'.
It is the nearest folder upwards with .quoth, else with .git, never home."
  (let* ((folder (expand-file-name (or folder default-directory)))
         (find (lambda (name)
                 (locate-dominating-file
                  folder (lambda (one)
                           (and (not (member (file-name-as-directory (expand-file-name one))
                                             (list "/" (file-name-as-directory (expand-file-name "~")))))
                                (file-exists-p (expand-file-name name one))))))))
    (file-name-as-directory
     (expand-file-name (or (funcall find ".quoth") (funcall find ".git") folder)))))

(defun quoth--lines (filter)
  "Return a process filter by which FILTER gets each whole line."
  (let ((rest ""))
    (lambda (_process text)
      (let ((lines (split-string (concat rest text) "\n")))
        (setq rest (car (last lines)))
        (mapc filter (butlast lines))))))

(defun quoth--start (words input then &optional filter)
  "Run quoth with WORDS in this folder and INPUT on its stdin.
At its end THEN is called in this buffer with the exit code, stdout
and stderr.  FILTER is called with each line of stdout.  Return the process."
  (when (file-remote-p default-directory)
    (user-error "The folder %s is on another machine; quoth runs on this one" default-directory))
  (let* ((process-environment (append '("TERM=dumb" "NO_COLOR=1") process-environment))
         (here (current-buffer)) (folder default-directory) (out "")
         (errors (generate-new-buffer " *quoth errors*"))
         (stderr (make-pipe-process :name "quoth errors" :buffer errors :noquery t
                                    :coding 'utf-8-unix :sentinel #'ignore))
         (process
          (condition-case nil
              (make-process
               :name "quoth" :noquery t :connection-type 'pipe :coding 'utf-8-unix :stderr stderr
               :command (append quoth-command '("--no-input") words)
               :filter (if filter (quoth--lines filter)
                         (lambda (_process text) (setq out (concat out text))))
               :sentinel
               (lambda (process _event)
                 (unless (process-live-p process)
                   (let ((tries 20))     ; a program left behind may keep it open
                     (while (and (process-live-p stderr) (< 0 (setq tries (1- tries))))
                       (accept-process-output stderr 0.05)))
                   (let ((err (with-current-buffer errors (buffer-string))))
                     (delete-process stderr)
                     (kill-buffer errors)
                     (process-put process 'quoth-end (list (process-exit-status process) out err))
                     (run-at-time 0 nil #'quoth--ended process then here folder)))))
            (file-missing
             (delete-process stderr)
             (kill-buffer errors)
             (user-error "The program %s is not found; set quoth-command" (car quoth-command))))))
    (push process quoth--running)
    (condition-case nil
        (progn (process-send-string process (or input "")) (process-send-eof process))
      (error nil))                      ; it has ended: its sentinel says why
    process))

(defun quoth--ended (process then here folder)
  "Call THEN with what PROCESS gave, in the buffer HERE or else in FOLDER."
  (unwind-protect
      (condition-case problem
          (with-local-quit
            (if (buffer-live-p here)
                (with-current-buffer here (apply then (process-get process 'quoth-end)))
              (with-temp-buffer
                (setq default-directory folder)
                (apply then (process-get process 'quoth-end)))))
        (error (message "%s" (error-message-string problem))))
    (setq quoth--running (delq process quoth--running))))

(defun quoth--wait (words input)
  "Run quoth with WORDS and INPUT; return its exit code, stdout and stderr.
Emacs shows what happens meanwhile, and \\[keyboard-quit] ends it."
  (let ((process (quoth--start words input #'ignore)))
    (unwind-protect
        (while (not (process-get process 'quoth-end)) (accept-process-output nil 0.05))
      (when (process-live-p process) (interrupt-process process)))
    (process-get process 'quoth-end)))

(defun quoth--complaint (out err)
  "What went wrong, by OUT and ERR."
  (string-trim (if (string-empty-p err) out err)))

(defun quoth--parsed (text)
  "The first JSON value in TEXT; objects are hash tables."
  (json-parse-string text :array-type 'list :null-object nil :false-object :false))

(defun quoth--text (then &rest words)
  "Call THEN with what quoth prints for WORDS; show its complaint otherwise."
  (quoth--start words nil (lambda (code out err)
                            (if (eql code 0) (funcall then out)
                              (message "%s" (quoth--complaint out err))))))

(defun quoth--data (then &rest words)
  "Call THEN with the JSON that quoth prints for WORDS."
  (apply #'quoth--text (lambda (out) (funcall then (quoth--parsed out))) "--json" words))

(defun quoth--line (text)
  "TEXT on one line, without characters that reorder or hide it."
  (replace-regexp-in-string "[[:cntrl:]\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+ *" " "
                            (format "%s" (or text ""))))

(defun quoth--time (text)
  "TEXT, a time of quoth, as a time of this place."
  (format-time-string "%F %R" (encode-time (iso8601-parse text))))

(defun quoth--filled (text mode folder)
  "Fill the buffer with TEXT, to be read in MODE; FOLDER is its folder."
  (let ((inhibit-read-only t) (enable-local-variables nil))
    (erase-buffer)
    (insert text)
    (funcall mode)
    (goto-char (point-min)))
  (setq buffer-read-only t default-directory folder))

;;; What waits for a person

(define-derived-mode quoth-request-mode special-mode "Request"
  "A request in full; the change it asks for is shown in the colours of a diff.
An argument that the model chose has the colour of a warning."
  (require 'diff-mode)
  (setq font-lock-defaults
        '((("^│ \\+.*" . 'diff-added) ("^│ -.*" . 'diff-removed) ("^│ @@.*" . 'diff-hunk-header)
           ("^! .*" . 'warning))
          t)))

(defvar quoth-pending-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'quoth-pending-show)
    (define-key map "a" #'quoth-pending-approve)
    (define-key map "d" #'quoth-pending-deny)
    (define-key map "r" #'quoth-pending-answer)
    map)
  "Keys of `quoth-pending-mode'.")

(define-derived-mode quoth-pending-mode tabulated-list-mode "Pending"
  "The calls that wait for a person.
\\<quoth-pending-mode-map>\\[quoth-pending-show] shows one with its change, \
\\[quoth-pending-approve] approves it, \\[quoth-pending-deny] denies it
with a reason, \\[quoth-pending-answer] answers a question."
  (setq tabulated-list-format [("ID" 6 t) ("Asked" 17 t) ("By" 10 t) ("Session" 12 t) ("Call" 0 nil)])
  (setq-local revert-buffer-function #'quoth--pending-refresh)
  (tabulated-list-init-header))

(defun quoth--pending-row (one)
  "The row of ONE request."
  (let ((of (lambda (key) (quoth--line (gethash key one)))))
    (list (gethash "id" one)
          (vector (funcall of "id")
                  (quoth--time (funcall of "asked"))
                  (funcall of "user") (funcall of "session")
                  (funcall of (if (equal (gethash "kind" one) "question") "question" "form"))))))

(defun quoth--pending-refresh (&rest _)
  "Ask for the list of this buffer again."
  (quoth--pending-list (lambda (requests) (unless requests (message "Nothing waits")))))

(defun quoth--pending-list (then)
  "List in this buffer what waits, and call THEN with the requests."
  (quoth--data (lambda (requests)
                 (quoth--note-waits requests)
                 (setq tabulated-list-entries (mapcar #'quoth--pending-row requests))
                 (let ((line (line-number-at-pos))) ; the next key must not meet another request by chance
                   (tabulated-list-print)
                   (goto-char (point-min))
                   (forward-line (1- line))
                   (when (and (eobp) (not (bobp))) (forward-line -1)))
                 (funcall then requests))
               "pending"))

;;;###autoload
(defun quoth-pending ()
  "List what waits for a decision in this project."
  (interactive)
  (let ((root (quoth--root)))
    (pop-to-buffer "*quoth pending*")
    (quoth-pending-mode)
    (setq default-directory root)
    (quoth--pending-refresh)))

(defun quoth--at-point ()
  "The request at point."
  (or (tabulated-list-get-id) (user-error "There is no request on this line")))

(defun quoth-pending-show (id &optional then)
  "Show request ID in full, with the diff of its change; then call THEN."
  (interactive (list (quoth--at-point)))
  (quoth--text (lambda (text)
                 (let ((folder default-directory))
                   (with-current-buffer (get-buffer-create "*quoth request*")
                     (quoth--filled text #'quoth-request-mode folder)
                     (display-buffer (current-buffer))))
                 (when then (funcall then)))
               "pending" id))

(defun quoth-pending-approve (id)
  "Show request ID, and approve it once if the answer is yes."
  (interactive (list (quoth--at-point)))
  (let ((here (window-buffer)))
    (quoth-pending-show id (lambda ()
                             (when (quoth--yes here (format "Approve request %s once?" id))
                               (quoth--decide id "approve" id))))))

(defun quoth--yes (here question)
  "Whether you answer QUESTION with yes.
You are not asked if you have left the buffer HERE meanwhile: what you
type elsewhere is no answer."
  (if (eq here (window-buffer)) (y-or-n-p question)
    (message "%s Not asked: you are in another buffer now" question)
    nil))

(defun quoth-pending-deny (id why)
  "Deny request ID; its caller gets WHY as the reason."
  (interactive (let ((id (quoth--at-point))) (list id (read-string (format "Why is %s denied? " id)))))
  (quoth--decide id "deny" id (concat "--why=" why)))

(defun quoth-pending-answer (id)
  "Show request ID, a question, and answer it in words or by a choice."
  (interactive (list (quoth--at-point)))
  (quoth--data
   (lambda (asked)
     (when (equal (gethash "kind" asked) "approval")
       (user-error "Request %s is no question: approve it with a, or deny it with d" id))
     (quoth-pending-show
      id (lambda ()
           (let ((choices (gethash "choices" asked)))
             (quoth--decide id "answer" id "--"
                            (if choices
                                (completing-read "Your answer: " choices nil (eq t (gethash "only" asked)))
                              (read-string "Your answer: ")))))))
   "pending" id))

(defvar quoth--places (make-hash-table :test #'equal)
  "How a session that waits continues, by its id.
The value is the marker at which its answer goes on, or a function.")

(defun quoth--decide (id &rest words)
  "Decide request ID by WORDS, then list the rest.
A session that waits in a buffer of this Emacs continues when nothing more
of it waits; for others the message says how."
  (let ((session (when (derived-mode-p 'quoth-pending-mode)
                   (when-let ((row (cadr (assoc id tabulated-list-entries)))) (aref row 3)))))
    (quoth--start
     words nil
     (lambda (code out err)
       (if (not (eql code 0)) (message "%s" (quoth--complaint out err))
         (let* ((place (and session (gethash session quoth--places)))
                (said (string-trim (if place out (concat out err))))
                (more (seq-some (lambda (row) (and (equal (aref (cadr row) 3) session)
                                                   (not (equal (car row) id))))
                                tabulated-list-entries)))
           (if (not (derived-mode-p 'quoth-pending-mode)) (message "%s" said)
             (quoth--pending-list (lambda (_) (message "%s" said)))
             (cond ((or more (not place)) nil)
                   ((markerp place) (quoth-resume session))
                   (t (funcall place))))))))))

;;; The mode line

(defvar quoth--waits (make-hash-table :test #'equal) "How many requests wait, by root.")
(defvar quoth--counting nil "The process that counts what waits.")
(defvar quoth--waits-timer nil "The timer of `quoth-waits-mode'.")

(defun quoth--note-waits (requests)
  "Keep the number of REQUESTS of this project for the mode line."
  (puthash (quoth--root) (length requests) quoth--waits)
  (force-mode-line-update t))

(defvar-local quoth--known-root nil "The folder of this buffer and its root, for the mode line.")

(defun quoth--waits-text ()
  "The text for the mode line of this buffer."
  (let ((count (if (or (hash-table-empty-p quoth--waits) (file-remote-p default-directory)) 0
                 (unless (equal (car quoth--known-root) default-directory)
                   (setq quoth--known-root (cons default-directory (quoth--root))))
                 (gethash (cdr quoth--known-root) quoth--waits 0))))
    (if (zerop count) ""
      (propertize (format " Q:%d" count) 'face 'warning 'mouse-face 'mode-line-highlight
                  'help-echo "Requests of quoth that wait for you; mouse-1 lists them"
                  'local-map (let ((map (make-sparse-keymap)))
                               (define-key map [mode-line mouse-1] #'quoth-pending)
                               map)))))

(defun quoth--count-waits ()
  "Ask how many requests of this project wait, for the mode line."
  (when (and (bound-and-true-p quoth-waits-mode) (not (file-remote-p default-directory)))
    (setq quoth--counting
          (quoth--start '("--json" "pending") nil
                        (lambda (code out _err)
                          (when (eql code 0) (quoth--note-waits (quoth--parsed out))))))))

(defun quoth--tick ()
  "Count what waits, unless a count is under way or you are away."
  (unless (or (process-live-p quoth--counting) (< 600 (float-time (or (current-idle-time) 0))))
    (with-current-buffer (window-buffer) (when buffer-file-name (quoth--count-waits)))))

;;;###autoload
(define-minor-mode quoth-waits-mode
  "Show in the mode line how many requests of the project wait, as in Q:2."
  :global t :group 'quoth
  (when quoth--waits-timer (cancel-timer quoth--waits-timer))
  (setq quoth--waits-timer nil
        global-mode-string (delete '(:eval (quoth--waits-text)) (or global-mode-string '(""))))
  (when quoth-waits-mode
    (setq global-mode-string (append global-mode-string '((:eval (quoth--waits-text))))
          quoth--waits-timer (run-at-time 0 quoth-waits-interval #'quoth--tick))))
(put 'global-mode-string 'risky-local-variable t)

;;; Tasks

(defvar-local quoth--process nil "The task that writes into this buffer.")

(defun quoth--choices ()
  "The options of the choices for every command."
  (append (and quoth-model (list (concat "--model=" quoth-model)))
          (and quoth-rules (list (concat "--policy=" (expand-file-name quoth-rules))))))

(defun quoth--put (place text)
  "Insert TEXT, which is not final, at the marker PLACE."
  (when (buffer-live-p (marker-buffer place))
    (with-current-buffer (marker-buffer place)
      (save-excursion
        (goto-char place)
        (let ((inhibit-read-only t)) (insert (propertize text 'quoth-raw t 'rear-nonsticky t)))))))

(defun quoth--settle (begin place &optional words)
  "Replace what is not final between BEGIN and PLACE with WORDS.
What you typed there meanwhile stays."
  (when (buffer-live-p (marker-buffer place))
    (with-current-buffer (marker-buffer place)
      (save-excursion
        (let ((inhibit-read-only t) at from)
          (while (setq from (text-property-any begin place 'quoth-raw t))
            (unless at (setq at (copy-marker from)))
            (delete-region from (next-single-property-change from 'quoth-raw nil place)))
          (when words
            (goto-char (or at place))
            (unless (memq (char-before) '(nil ?\n)) (insert "\n\n"))
            (insert words)))))))

(defun quoth--stream (words input place)
  "Run quoth with WORDS and INPUT; insert the answer at the marker PLACE.
The text of the model appears as it comes; of a whole reply the words stay."
  (let* ((buffer (marker-buffer place)) (begin (copy-marker place)) (end nil) (result nil)
         (hear
          (lambda (line)
            (let* ((event (quoth--parsed line)) (data (gethash "data" event)))
              (pcase (gethash "event" event)
                ("text" (quoth--put place data))
                ("said" (quoth--settle begin place data))
                ("thought" (quoth--settle begin place)) ; what is no word was a call
                ("call" (message "quoth: %s" (quoth--line data)))
                ("result" (setq result data))
                ("end" (setq end data)))))))
    (with-current-buffer buffer
      (when (process-live-p quoth--process)
        (user-error "A task still writes into this buffer; M-x quoth-stop ends it"))
      (setq quoth--process
            (quoth--start words input
                          (lambda (_code out err)
                            (quoth--settle begin place)
                            (quoth--landed end place (quoth--outcome result (quoth--complaint out err)))
                            (quoth--count-waits))
                          hear)))))

(defun quoth--outcome (result complaint)
  "The words for RESULT, that of a program without a task; COMPLAINT without it."
  (if (not result) complaint
    (let ((words (gethash "message" result)))
      (format "quoth: %s: %s" (gethash "status" result)
              (quoth--line (if (member words '(nil "")) (gethash "value" result) words))))))

(defun quoth--landed (end place complaint)
  "Say how a task ended: its END, or COMPLAINT; it continues at PLACE."
  (if (not end) (message "%s" complaint)
    (let ((session (gethash "session" end)) (status (gethash "status" end)))
      (when (buffer-live-p (marker-buffer place))
        (with-current-buffer (marker-buffer place) (setq quoth-session session)))
      (remhash session quoth--places)
      (pcase status
        ("done" (message "quoth: done, session %s" session))
        ("pending" (puthash session place quoth--places)
         (message "quoth waits for you: M-x quoth-pending"))
        (_ (message "quoth: %s: %s" status (quoth--line (gethash "reply" end))))))))

(defun quoth--place ()
  "A marker for an answer: at point, or in the buffer *quoth* if this is read-only."
  (if (not buffer-read-only) (copy-marker (point) t)
    (let ((folder default-directory))
      (with-current-buffer (get-buffer-create "*quoth*")
        (setq default-directory folder)
        (goto-char (point-max))
        (unless (bolp) (insert "\n\n"))
        (display-buffer (current-buffer))
        (copy-marker (point) t)))))

(defun quoth--bounds ()
  "The bounds of the region, or of the paragraph at point."
  (if (use-region-p) (cons (region-beginning) (region-end))
    (save-excursion
      (let ((end (progn (forward-paragraph) (skip-chars-backward " \t\n") (point))))
        (backward-paragraph)
        (skip-chars-forward " \t\n")
        (cons (min (point) end) end)))))

(defun quoth--read-model (&rest _)
  "Read the name of a model; empty means the default."
  (let ((model (completing-read "Model (empty: the default): " quoth-models nil nil quoth-model)))
    (unless (string-empty-p model) model)))

(defun quoth--read-session (&rest _)
  "Read a session of this project; empty means a new one."
  (pcase-let ((`(,code ,out ,err) (quoth--wait '("--json" "sessions") nil)))
    (unless (eql code 0) (user-error "%s" (quoth--complaint out err)))
    (let ((session (quoth--choose-session "Session (empty: a new one): " (quoth--parsed out))))
      (unless (string-empty-p session) session))))

(defun quoth--choose-session (prompt sessions)
  "Read one of SESSIONS by PROMPT, the latest first, with their tasks."
  (let* ((lines (mapcar (lambda (one)
                          (cons (gethash "id" one)
                                (format "  %s  %s" (quoth--time (gethash "last" one))
                                        (quoth--line (gethash "task" one)))))
                        (reverse sessions)))
         (about `(metadata (display-sort-function . identity) (cycle-sort-function . identity)
                           (annotation-function . ,(lambda (id) (cdr (assoc id lines)))))))
    (completing-read prompt (lambda (text filter action)
                              (if (eq action 'metadata) about
                                (complete-with-action action lines text filter))))))

;;;###autoload
(defun quoth-send (&optional choose)
  "Send the region, or the paragraph at point, as a task.
The answer streams in behind it.  The tasks of a buffer are one session.
With a prefix argument CHOOSE the model and the session first."
  (interactive "P")
  (when choose
    (setq quoth-model (quoth--read-model) quoth-session (quoth--read-session)))
  (pcase-let* ((`(,from . ,to) (quoth--bounds)) (text (buffer-substring-no-properties from to)))
    (when (string-blank-p text) (user-error "There is no text here to send"))
    (let ((words `("--json" ,@(quoth--choices)
                   ,@(and quoth-session (list (concat "--session=" quoth-session)))
                   "run" "--stream" ,@(and quoth-plan '("--plan")) "-")))
      (unless buffer-read-only
        (goto-char to)
        (deactivate-mark)
        (insert (if (bolp) "\n" "\n\n")))
      (quoth--stream words text (quoth--place)))))

;;;###autoload
(defun quoth-resume (session)
  "Continue SESSION where its answer stopped, or at point."
  (interactive (list (or (quoth--read-session) (user-error "Name a session to continue"))))
  (let* ((kept (gethash session quoth--places))
         (place (if (and (markerp kept) (buffer-live-p (marker-buffer kept))) kept (quoth--place))))
    (with-current-buffer (marker-buffer place)
      (quoth--stream `("--json" ,@(quoth--choices) "resume" "--stream" ,session) nil place))))

(defun quoth-stop ()
  "Interrupt the task that writes into this buffer."
  (interactive)
  (unless (process-live-p quoth--process) (user-error "No task writes into this buffer"))
  (interrupt-process quoth--process))

;;; The menu

;; `:none' is the word for nil.
(defclass quoth--choice (transient-lisp-variable) ((none :initarg :none)))

(cl-defmethod transient-format-value ((choice quoth--choice))
  "The value of CHOICE in words."
  (let ((value (oref choice value)))
    (propertize (cond ((not value) (oref choice none)) ((stringp value) value) (t "on"))
                'face (if value 'transient-value 'transient-inactive-value))))

(transient-define-infix quoth--choose-model ()
  :class 'quoth--choice :none "the default" :variable 'quoth-model :description "Model"
  :key "m" :reader #'quoth--read-model)

(transient-define-infix quoth--choose-session-of-buffer ()
  :class 'quoth--choice :none "new" :variable 'quoth-session :description "Session"
  :key "s" :reader #'quoth--read-session)

(transient-define-infix quoth--choose-rules ()
  :class 'quoth--choice :none "none" :variable 'quoth-rules :description "More rules"
  :key "r" :reader (lambda (&rest _) (read-file-name "Rules: " nil nil t)))

(transient-define-infix quoth--choose-plan ()
  :class 'quoth--choice :none "off" :variable 'quoth-plan :description "Plan mode"
  :key "p" :always-read t :reader (lambda (&rest _) (not quoth-plan)))

;;;###autoload (autoload 'quoth-menu "quoth" nil t)
(transient-define-prefix quoth-menu ()
  "Choose model, session, rules and plan mode, and act."
  [["Choices"
    (quoth--choose-model)
    (quoth--choose-session-of-buffer)
    (quoth--choose-rules)
    (quoth--choose-plan)]
   ["Task"
    ("RET" "Send" quoth-send)
    ("c" "Continue a session" quoth-resume)
    ("k" "Stop" quoth-stop)
    ("u" "Undo" quoth-undo)]
   ["Project"
    ("w" quoth-pending
     :description (lambda () (format "What waits (%d)" (gethash (quoth--root) quoth--waits 0))))
    ("f" "Fly a plan" quoth-fly)
    ("l" "Log" quoth-log)
    ("a" "Agenda" quoth-agenda)
    ("R" "Rules of the project" quoth-visit-rules)]])

(defun quoth-visit-rules ()
  "Visit the rules of this project."
  (interactive)
  (find-file (expand-file-name ".quoth/policy.hy" (quoth--root))))

;;; Flights

(defvar quoth-fly-outcomes
  '((quoth-failed "^\\([^ \n:]+\\):\\([0-9]+\\): \\(?:FAILED\\|DENIED\\|CANCELLED\\)" 1 2 nil 2)
    (quoth-waits "^\\([^ \n:]+\\):\\([0-9]+\\): \\(?:PLAN\\|WAITING\\)" 1 2 nil 1)
    (quoth-done "^\\([^ \n:]+\\):\\([0-9]+\\): \\(?:DONE\\|APPROVED\\|RUNNING\\)" 1 2 nil 0)
    (quoth-mistake "^\\(?:quoth: \\)?\\([^ \n:]+\\.\\(?:org\\|md\\)\\):\\([0-9]+\\)\\(?::\\([0-9]+\\)\\)?: " 1 2 3 2))
  "How the lines of a flight name places.
Failed steps are errors, those that wait are warnings.")

(defvar-local quoth--plan-buffer nil "The buffer of the plan that is flown here.")

(define-compilation-mode quoth-fly-mode "Flight"
  "A flight as it happens; \\[next-error] goes to the next step that failed or waits."
  (setq-local compilation-error-regexp-alist-alist quoth-fly-outcomes
              compilation-error-regexp-alist (mapcar #'car quoth-fly-outcomes)
              compilation-exit-message-function #'quoth--fly-exit)
  (add-hook 'compilation-filter-hook #'quoth--revert-plan nil t)
  (add-hook 'compilation-finish-functions #'quoth--fly-finish nil t))

(defun quoth--fly-exit (status code message)
  "The words for the end of a flight, by STATUS and CODE, else MESSAGE."
  (if (eq status 'exit)
      (cons (pcase code (0 "landed\n") (3 "waits for you\n") (130 "interrupted\n")
                   (_ (format "stopped with exit code %d\n" code)))
            code)
    (cons message code)))

(defun quoth--revert-plan ()
  "Read the plan again into its buffer; edits that are not saved stay."
  (when (buffer-live-p quoth--plan-buffer)
    (with-current-buffer quoth--plan-buffer
      (cond ((verify-visited-file-modtime) nil)
            ((buffer-modified-p)
             (message "%s has edits that are not saved; the flight has changed the file" (buffer-name)))
            (t (let ((place (quoth--entry-place)))
                 (revert-buffer t t t)
                 (when place (quoth--goto-entry-place place))))))))

(defun quoth--entry-place ()
  "The place of point in this plan: title of the entry, and the text of the line."
  (unless (org-before-first-heading-p)
    (list (org-get-heading t t t t) (org-at-heading-p)
          (buffer-substring-no-properties (line-beginning-position) (line-end-position)))))

(defun quoth--goto-entry-place (place)
  "Go to PLACE, a value of `quoth--entry-place'."
  (pcase-let ((`(,title ,heading ,line) place) (found nil))
    (save-excursion
      (goto-char (point-min))
      (while (and (not found) (re-search-forward org-heading-regexp nil t))
        (when (equal title (org-get-heading t t t t))
          (setq found (line-beginning-position))
          (unless heading
            (let ((end (save-excursion (outline-next-heading) (point))))
              (when (search-forward line end t) (setq found (line-beginning-position))))))))
    (when found (goto-char found))))

(defun quoth--fly-finish (&rest _)
  "Show the plan as the flight left it, and count what waits."
  (quoth--revert-plan)
  (quoth--count-waits))

;;;###autoload
(defun quoth-fly (plan)
  "Fly PLAN, an Org file, in the root of this project.
Its buffer is read again after each step."
  (interactive (list (or (and (derived-mode-p 'org-mode) buffer-file-name)
                         (read-file-name "Plan: " nil nil t nil))))
  (let* ((plan (expand-file-name plan)) (buffer (find-buffer-visiting plan))
         (default-directory (quoth--root)))
    (when buffer (with-current-buffer buffer (save-buffer)))
    (let ((words (append quoth-command '("--no-input") (quoth--choices)
                         (list "fly" "--" (file-relative-name plan)))))
      (with-current-buffer (compilation-start (mapconcat #'shell-quote-argument words " ") #'quoth-fly-mode)
        (setq quoth--plan-buffer buffer)
        (current-buffer)))))

;;; Logs and undo

(defun quoth--with-session (session command then)
  "Call THEN with SESSION; where it is nil you choose, where empty COMMAND does."
  (if (and session (not (string-empty-p session))) (funcall then session)
    (quoth--data
     (lambda (sessions)
       (let ((chosen (or session (quoth--choose-session "Session (your latest): " sessions))))
         (if (not (string-empty-p chosen)) (funcall then chosen)
           (let ((one (seq-find (lambda (one) (member command (gethash "latest_for" one))) sessions)))
             (unless one (user-error "None of your sessions here is one for quoth %s" command))
             (funcall then (gethash "id" one))))))
     "sessions")))

;;;###autoload
(defun quoth-log (&optional session)
  "Show SESSION as an Org document; empty means your latest one."
  (interactive)
  (let ((default-directory (quoth--root)))
    (quoth--with-session
     session "log"
     (lambda (session)
       (quoth--text (lambda (text)
                      (let ((folder default-directory))
                        (pop-to-buffer (format "*quoth log %s*" session))
                        (quoth--filled text #'org-mode folder)))
                    "log" "--org" session)))))

;;;###autoload
(defun quoth-undo (&optional session)
  "Show how undo would change the files of SESSION, and do so if you say yes."
  (interactive)
  (let ((default-directory (quoth--root)) (here (window-buffer)))
    (quoth--with-session
     (or session quoth-session) "undo"
     (lambda (session)
       (quoth--text (lambda (text)
                      (let ((folder default-directory))
                        (with-current-buffer (get-buffer-create "*quoth request*")
                          (quoth--filled text #'quoth-request-mode folder)
                          (display-buffer (current-buffer))))
                      (when (quoth--yes here (format "Undo the file changes of session %s?" session))
                        (quoth--start (list "--yes" "undo" session) nil
                                      (lambda (_code out err) (message "%s" (quoth--complaint out err))))))
                    "undo" "--dry-run" session)))))

;;; Plans: mistakes and the agenda

(defun quoth-plan-p ()
  "Whether this buffer is a plan: its #+TODO line names the word PLAN."
  (and (derived-mode-p 'org-mode) (member "PLAN" org-todo-keywords-1) t))

(defun quoth--check ()
  "The words that check this buffer: a plan or rules; nil for others."
  (cond ((quoth-plan-p) '("fly" "--check"))
        ((and buffer-file-name (string-match-p "\\`policy.*\\.hy\\'" (file-name-nondirectory buffer-file-name)))
         '("policy" "check"))))

(defvar-local quoth--checking nil "The process that checks this buffer.")

(defun quoth-flymake (report &rest _)
  "Check this plan or these rules for Flymake; REPORT gets the mistakes."
  (when (process-live-p quoth--checking) (kill-process quoth--checking))
  (let* ((words (or (quoth--check) (error "This buffer is neither a plan nor rules")))
         (folder (and (buffer-modified-p) (make-temp-file "quoth" t)))
         (file (if folder (expand-file-name (file-name-nondirectory buffer-file-name) folder) buffer-file-name)))
    (when folder
      (let ((coding-system-for-write 'utf-8-unix)) (write-region nil nil file nil 'quiet)))
    (setq quoth--checking
          (quoth--start
           `("--json" ,@words ,file) nil
           (let (process)
             (lambda (_code out err)
               (setq process quoth--checking)
               (when folder (delete-directory folder t))
               (unless (process-live-p process) ; else a later check will report
                 (funcall report (quoth--diagnostics out err)))))))))

(defun quoth--diagnostics (out err)
  "The diagnostics of this buffer in OUT, what a check has printed, or in ERR."
  (let ((found (condition-case nil (quoth--parsed out)
                 (error (user-error "%s" (quoth--complaint out err))))))
    (mapcar
     (lambda (one)
       (let ((message (gethash "message" one)) (line (gethash "line" one)) (column (gethash "column" one)))
         (when (and (not line) (string-match "\\`[^\n]*?:\\([0-9]+\\):\\([0-9]+\\): \\([^\n]*\\)" message))
           (setq line (string-to-number (match-string 1 message))
                 column (string-to-number (match-string 2 message))
                 message (match-string 3 message)))
         (pcase-let ((`(,from . ,to) (flymake-diag-region (current-buffer) (or line 1) column)))
           (flymake-make-diagnostic (current-buffer) from to
                                    (if (equal (gethash "kind" one) "ignored") :warning :error)
                                    message))))
     (if (listp found) found (list found)))))

;;;###autoload
(defun quoth-flymake-setup ()
  "Check this buffer with Flymake, if it is a plan or rules.
Add it to `find-file-hook'."
  (interactive)
  (when (and buffer-file-name (quoth--check))
    (add-hook 'flymake-diagnostic-functions #'quoth-flymake nil t)
    (flymake-mode 1)))

;;;###autoload
(defun quoth-agenda-files (&optional root)
  "The plans of the project ROOT, and its memory.org."
  (let ((root (or root (quoth--root))))
    (seq-filter
     (lambda (file)
       (or (equal (file-name-nondirectory file) "memory.org")
           (with-temp-buffer
             (insert-file-contents file nil 0 4000)
             (re-search-forward "^#\\+\\(?:SEQ_\\)?TODO:.*\\_<PLAN\\_>" nil t))))
     (seq-filter #'file-readable-p
                 (mapcan (lambda (folder)
                           (and (file-directory-p folder)
                                (directory-files folder t "\\`[^.#].*\\.org\\'")))
                         (list root (expand-file-name "plans" root) (expand-file-name ".quoth/plans" root)))))))

;;;###autoload
(defun quoth-agenda ()
  "Show the week and the open tasks of this project in Org's agenda."
  (interactive)
  (let ((org-agenda-custom-commands
         `(("q" "quoth" ((agenda "") (alltodo "")) ((org-agenda-files (quoth-agenda-files ,(quoth--root))))))))
    (org-agenda nil "q")))

(provide 'quoth)
;;; quoth.el ends here
