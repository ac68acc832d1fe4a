import { quoteWord } from '@shellfleet/protocol';

/** One argument is a script. Several are words of one command; each is quoted, so that the shell passes it on unchanged. */
export function toScript(words: readonly string[]): string {
  return words.length === 1 ? (words[0] as string) : words.map(quoteWord).join(' ');
}
