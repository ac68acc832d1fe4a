// Entries are named by ULIDs; on the wire an id is the 128 bits that a ULID spells.

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** Values of a ULID's characters (upper and lower case) by character code. -1 for all other characters. */
const VALUES = new Int8Array(128).fill(-1);
for (const [value, character] of [...ALPHABET].entries()) {
  VALUES[character.charCodeAt(0)] = value;
  VALUES[character.toLowerCase().charCodeAt(0)] = value;
}
const ULID_LENGTH = 26;
export const ENTRY_ID_BYTES = 16;

/** Returns the ULID of a command id `<sessionId>.<ULID>`. */
export function toEntryId(commandId: string): string {
  return commandId.slice(-ULID_LENGTH);
}

export function entryIdToBytes(entryId: string): Uint8Array {
  if (entryId.length !== ULID_LENGTH)
    throw new RangeError(`An entry id is a ULID of 26 characters, not ${entryId.length}.`);
  const bytes = new Uint8Array(ENTRY_ID_BYTES);
  let bits = 0;
  let pending = 0;
  let at = ENTRY_ID_BYTES - 1;
  for (let i = ULID_LENGTH - 1; i >= 0; i--) {
    const value = VALUES[entryId.charCodeAt(i)] ?? -1;
    if (value < 0 || (i === 0 && value > 7)) throw new RangeError(`'${entryId}' is not a ULID.`);
    pending |= value << bits;
    bits += 5;
    if (bits >= 8) {
      bytes[at--] = pending & 0xff;
      pending >>= 8;
      bits -= 8;
    }
  }
  if (at >= 0) bytes[at] = pending & 0xff;
  return bytes;
}

export function entryIdFromBytes(bytes: Uint8Array): string {
  let bits = 0;
  let pending = 0;
  let at = ENTRY_ID_BYTES - 1;
  let text = '';
  for (let i = 0; i < ULID_LENGTH; i++) {
    if (bits < 5 && at >= 0) {
      pending |= bytes[at--]! << bits;
      bits += 8;
    }
    text = ALPHABET[pending & 31]! + text;
    pending >>= 5;
    bits -= 5;
  }
  return text;
}
