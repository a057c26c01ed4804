(deny (any-tool :path (under "drawer")) :why "the drawer is private")
