/** A set of bytes, as a table: 1 where the byte is in it. */
export type ByteSet = Uint8Array;

/** 'a-z0-9_' as a regular expression would read it between brackets; only ASCII. */
function byteSet(ranges: string): ByteSet {
  const pattern = new RegExp(`[${ranges}]`);
  return Uint8Array.from({ length: 256 }, (_, byte) => (byte < 128 && pattern.test(String.fromCharCode(byte)) ? 1 : 0));
}

export const ALPHANUMERICS = byteSet('A-Za-z0-9');

/** `end` less the bytes of a UTF-8 character that began before it and may go on behind it. */
export function wholeCharacters(bytes: Uint8Array, from: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= from; back += 1) {
    const byte = bytes[end - back]!;
    if (byte < 0x80) return end;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) && byte < 0xf5 ? end - back : end;
  }
  return end;
}
