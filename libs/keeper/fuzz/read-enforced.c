// Prints what enforced.c reads. usage: read-enforced <directory like /proc/self> <control group> <workspace>
#include "../src/enforced.h"
#include <stdio.h>

int main(int argc, char **argv) {
  static char text[8192];
  if (argc != 4) return 2;
  fwrite(text, 1, enforced_describe(argv[1], argv[2], argv[3], text, sizeof text), stdout);
  return 0;
}
