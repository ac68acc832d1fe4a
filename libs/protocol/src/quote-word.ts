/** Quotes a word for a POSIX shell, which passes it on unchanged. Words that need no quotes stay as they are. */
export function quoteWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) && !/^[A-Za-z_][A-Za-z0-9_]*=/.test(word)
    ? word
    : `'${word.replaceAll("'", `'\\''`)}'`;
}
