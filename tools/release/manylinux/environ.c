// Linked into programs only. A program's code may have the C library's `environ` in the program
// itself. It has three names, which must stay one variable, and a stand-in for the library cannot
// say so.
char** environ;
extern char** __environ __attribute__((alias("environ")));
extern char** _environ __attribute__((alias("environ")));
