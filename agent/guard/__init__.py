"""quoth as an agent of the Agent Client Protocol: for Emacs, Zed, JetBrains and Neovim."""
