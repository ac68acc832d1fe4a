// Prints the results of probes.c for the lines in the argument.
#include "../src/probes.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  static char text[4096];
  if (argc != 2) return 2;
  probes_begin((const uint8_t *)argv[1], strlen(argv[1]));
  for (int ms; (ms = probes_look()) >= 0;) usleep(ms * 1000);
  fwrite(text, 1, probes_describe(text, sizeof text), stdout);
  return 0;
}
