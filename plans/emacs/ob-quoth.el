;;; ob-quoth.el --- Org Babel functions for quoth  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The quoth authors

;; Author: The quoth authors
;; Keywords: tools, literate programming
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Blocks of quoth are programs of the agent's sandbox:
;;
;;   (org-babel-do-load-languages 'org-babel-load-languages '((quoth . t)))
;;
;; :results output gives what the program prints, :async runs it beside Emacs,
;; :session, :tools and :workspace are options of the command.  In the buffer
;; of a plan C-c C-c runs a block of hy through quoth too; in other buffers
;; blocks of hy are left to ob-hy.

;;; Code:

(require 'ob)
(require 'org-element)
(require 'quoth)

(defvar org-babel-default-header-args:quoth '((:results . "value"))
  "Header arguments of a block of quoth.")
(defconst org-babel-header-args:quoth '((tools . :any) (workspace . :any))
  "Files of tools, and the folder that the file tools may touch.")
(add-to-list 'org-src-lang-modes '("quoth" . lisp))

(defun quoth-babel--literal (value)
  "VALUE, of Org, as a literal of Hy."
  (cond ((null value) "None")
        ((eq value t) "True")
        ((numberp value) (number-to-string value))
        ((stringp value) (json-encode-string value))
        ((eq value 'hline) "None")
        ((symbolp value) (json-encode-string (symbol-name value)))
        ((proper-list-p value) (concat "[" (mapconcat #'quoth-babel--literal value " ") "]"))
        ((vectorp value) (quoth-babel--literal (append value nil)))
        (t (user-error "This value cannot be given to quoth: %S" value))))

(defun org-babel-expand-body:quoth (body params)
  "BODY inside of a let that binds the :var among PARAMS."
  (let ((vars (org-babel--get-vars params)))
    (if (null vars) body
      (format "(let [%s]\n%s\n)"
              (mapconcat (lambda (var) (format "%s %s" (car var) (quoth-babel--literal (cdr var)))) vars "  ")
              body))))

(defun quoth-babel--options (params)
  "The options of the command that PARAMS ask for."
  (let ((session (cdr (assq :session params))) (tools (cdr (assq :tools params))))
    (append (and quoth-model (list (concat "--model=" quoth-model)))
            (unless (member session '(nil "none")) (list "--session" (format "%s" session)))
            (mapcan (lambda (file) (list "--tools" (expand-file-name file)))
                    (if (listp tools) (copy-sequence tools) (split-string (format "%s" tools))))
            (quoth-babel--workspace params))))

(defun quoth-babel--workspace (params)
  "The options for the workspace that PARAMS name."
  (when-let ((workspace (cdr (assq :workspace params))))
    (list "--workspace" (expand-file-name (format "%s" workspace)))))

(defun quoth-babel--output-p (params)
  "Whether PARAMS ask for what the program prints."
  (member "output" (cdr (assq :result-params params))))

(defun quoth-babel--result (block params out err)
  "The result for the block at BLOCK with PARAMS, of OUT and ERR of quoth."
  (let* ((answer (condition-case nil (quoth--parsed out)
                   (error (user-error "No answer from quoth: %s" (string-trim (concat out err))))))
         (value (gethash "value" answer)))
    (when (equal (gethash "status" answer) "pending")
      (quoth-babel--continue block params (gethash "request" answer)))
    (unless (equal (gethash "status" answer) "ok")
      (user-error "%s: %s" (gethash "status" answer) (gethash "message" answer)))
    (cond ((quoth-babel--output-p params) (gethash "message" answer))
          ((hash-table-p value) (json-encode value))
          ((eq value :false) "False")
          ((eq value t) "True")
          (t value))))

(defun org-babel-execute:quoth (body params)
  "Run BODY, a program, with PARAMS; after an error nothing is written."
  (let ((words (append (quoth-babel--options params) '("--json" "eval" "-")))
        (block (copy-marker org-babel-current-src-block-location))
        ;; With a last value of its own: the value of a program that only prints is its output.
        (program (concat (org-babel-expand-body:quoth body params)
                         (and (quoth-babel--output-p params) "\nTrue")))
        (async (assq :async params)))
    (if (and async (not (equal (cdr async) "no"))) (quoth-babel--later words program params block)
      (pcase-let ((`(,_ ,out ,err) (quoth--wait words program)))
        (quoth-babel--result block params out err)))))

(defun quoth-babel--later (words program params block)
  "Run PROGRAM by WORDS beside Emacs, and insert its result below BLOCK.
PARAMS are those of the block.  Return the text that is shown until then."
  (quoth--start
   words program
   (lambda (_code out err)
     (save-excursion
       (goto-char block)
       (let ((info (org-babel-get-src-block-info 'no-eval)))
         (condition-case problem
             (let ((result (quoth-babel--result block params out err)))
               (org-babel-remove-result info)
               (org-babel-insert-result result (cdr (assq :result-params params)) info nil "quoth"))
           (user-error (org-babel-remove-result info)
                       (signal (car problem) (cdr problem))))))))
  "quoth runs this block")

(defun quoth-babel--continue (block params request)
  "Let the approval of REQUEST continue BLOCK with PARAMS, and insert its result."
  (let ((workspace (quoth-babel--workspace params)))
    (quoth--start
     `(,@workspace "--json" "pending" ,request) nil
     (lambda (code out _err)
       (when (eql code 0)
         (let* ((session (gethash "session" (quoth--parsed out)))
                (words `(,@workspace "--json" "resume" ,session)))
           (puthash session
                    (lambda ()
                      (remhash session quoth--places)
                      (when (buffer-live-p (marker-buffer block))
                        (with-current-buffer (marker-buffer block)
                          (quoth-babel--later words nil params block))))
                    quoth--places)
           (quoth--count-waits)))))))

(defun quoth-babel-execute-in-plan ()
  "In a plan run the block of hy at point through quoth; return nil elsewhere."
  (when (and (quoth-plan-p) (equal (car (org-babel-get-src-block-info 'no-eval)) "hy")
             (eq (org-element-type (org-element-at-point)) 'src-block))
    (org-babel-execute-src-block nil (cons "quoth" (cdr (org-babel-get-src-block-info))))
    t))
(add-hook 'org-ctrl-c-ctrl-c-hook #'quoth-babel-execute-in-plan)

(provide 'ob-quoth)
;;; ob-quoth.el ends here
