/**
 * Programs that start no other program and read no program text, whatever their words and the files
 * of the folder are. A rule that allows one of them by its first words allows nothing that a person
 * does not see. Most programs start others by some option, variable or file: `git` by its hooks,
 * `cargo` by build scripts, `tar` and `sort` by options, `sed` and `find` by their scripts. Those
 * that destroy (`rm`, `dd`, `shred`) are left out too, since more words may follow those of a rule.
 */
const STARTS_NOTHING = new Set(
  `basename cat chgrp chmod chown cksum cmp comm cp csplit cut df dircolors dirname du echo expand expr factor false fmt fold
   grep groups head id join link ln logname ls md5sum mkdir mkfifo mktemp mv nl nproc numfmt od paste pathchk pr printenv
   ptx pwd readlink realpath rev rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep stat sum sync tac
   tail tee touch tr true tsort tty uname unexpand uniq unlink wc whoami base32 base64 b2sum yes`.split(/\s+/),
);

/** Takes the name of a program, without a path. */
export function startsNothing(name: string): boolean {
  return STARTS_NOTHING.has(name);
}
