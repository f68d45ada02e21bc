// Defines the C library's variable `environ` in a program; libraries are not linked with this file.
// A program that uses `environ` gets its own copy of the variable. The variable has three names,
// which must stay names of one variable. The stand-in for the C library cannot express that.
char** environ;
extern char** __environ __attribute__((alias("environ")));
extern char** _environ __attribute__((alias("environ")));
