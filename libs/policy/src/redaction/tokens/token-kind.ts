import { type ByteSet, byteSet } from '../bytes.ts';

/**
 * A token of a well-known format. An anchor is searched for literally; `shape` is then matched against the run of
 * `chars` that begins there. The idea and many prefixes are those of gitleaks (MIT,
 * https://github.com/gitleaks/gitleaks).
 */
export interface TokenKind {
  type: string;
  /** Texts with which the token begins, each of at least three characters. */
  anchors: readonly string[];
  /**
   * The token from its anchor on, with a bounded length. Text that the group `keep` matches at its beginning is not
   * redacted.
   */
  shape: RegExp;
  /** Characters of the token after the anchor. Default: TOKEN_CHARS. */
  chars?: ByteSet;
  /** Characters before the anchor that exclude a token. */
  notAfter?: ByteSet;
  /** Whether letters of the anchor match in either case. */
  fold?: boolean;
  /** Pattern of text at the end of the input that may become a token, and is therefore pending. Default: any text. */
  viable?: RegExp;
  /** How many bytes after the anchor are read. Default: MOST_TOKEN_BYTES. */
  most?: number;
}

export const TOKEN_CHARS = byteSet('A-Za-z0-9_-');
export const DOTTED_CHARS = byteSet('A-Za-z0-9_.-');
export const BASE64_CHARS = byteSet('A-Za-z0-9+/=_-');
export const MOST_TOKEN_BYTES = 512;

/** Characters before an anchor that exclude a token, because it would be a part of a longer name or of encoded data. */
export const INSIDE_WORD = byteSet('A-Za-z0-9_');
export const INSIDE_DATA = byteSet('A-Za-z0-9_+/.-');

const LINE_CHARS: ByteSet = new Uint8Array(256).fill(1);
LINE_CHARS[0x0a] = 0;
LINE_CHARS[0x0d] = 0;

/**
 * Describes a value that is recognised only by the name before it: `name = "value"`, `"name": "value"`, `name value`.
 */
export function assigned(
  type: string,
  names: readonly string[],
  value: string,
  valueChars: string,
  most = 256,
): TokenKind {
  // The lookahead fails at once if the rest of a name is too short, since no operator begins with such a character.
  const rest = String.raw`[A-Za-z0-9_.-]{0,40}(?![A-Za-z0-9_.-])\\?["'\]]{0,2}[ \t]{0,4}`;
  const operator = String.raw`(?:=>|:=|[=:,]|(?<=[ \t]))[ \t]{0,4}\\?["'\x60]?`;
  const anchor = `(?:${names.map((name) => name.replaceAll('.', '\\.')).join('|')})`;
  return {
    type,
    anchors: names,
    fold: true,
    chars: LINE_CHARS,
    most,
    shape: new RegExp(`^(?<keep>${anchor}${rest}${operator})${value}(?![${valueChars}])`, 'i'),
    viable: new RegExp(`^${anchor}${rest}(?:[=:]|(?:${operator})[${valueChars}]*)?$`, 'i'),
  };
}
