/**
 * Programs that start no other program and read no program text, whatever their words and files are. A rule that allows
 * such a program by its first words allows nothing that a person does not see. Others start programs by options,
 * variables or files: `git` by hooks, `cargo` by build scripts, `find` by `-exec`. Programs that destroy (`rm`, `dd`,
 * `shred`) are left out, since more words may follow those of a rule.
 */
const STARTS_NOTHING = new Set(
  `basename cat chgrp chmod chown cksum cmp comm cp csplit cut df dircolors dirname du echo expand expr factor false fmt fold
   grep groups head id join link ln logname ls md5sum mkdir mkfifo mktemp mv nl nproc numfmt od paste pathchk pr printenv
   ptx pwd readlink realpath rev rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep stat sum sync tac
   tail tee touch tr true tsort tty uname unexpand uniq unlink wc whoami base32 base64 b2sum yes`.split(/\s+/),
);

/** Tells whether the program starts nothing. `name` is its name without a path. */
export function startsNothing(name: string): boolean {
  return STARTS_NOTHING.has(name);
}
