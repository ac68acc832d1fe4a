import { z } from 'zod';
import { DENIED_ENV_NAMES, LIMITS } from './limits.ts';
import { byteLength, hasLoneSurrogate } from './text.ts';

const NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Environment variables: valid shell names, values without NUL, and a total size that `execve` accepts. */
export const envSchema = z
  .record(z.string(), z.string('must be a string'), 'must be an object of strings')
  .superRefine((env, context) => {
    let total = 0;
    for (const [name, value] of Object.entries(env)) {
      const refuse = (message: string) => context.addIssue({ code: 'custom', path: [name.slice(0, 64)], message });
      if (!NAME_PATTERN.test(name)) refuse('is not a variable name ([A-Za-z_][A-Za-z0-9_]*)');
      else if (DENIED_ENV_NAMES.includes(name) || name.startsWith('DOCKER_'))
        refuse('would change how the shell itself runs, and is not allowed');
      else if (value.includes('\0')) refuse(`holds a NUL byte at offset ${value.indexOf('\0')}`);
      else if (hasLoneSurrogate(value)) refuse('is not valid Unicode (lone surrogate)');
      const size = byteLength(value);
      if (size > LIMITS.envValueBytes) refuse(`is ${size} bytes; the limit is ${LIMITS.envValueBytes}`);
      total += size + name.length + 2;
    }
    if (total > LIMITS.envTotalBytes) {
      context.addIssue({ code: 'custom', message: `is ${total} bytes in all; the limit is ${LIMITS.envTotalBytes}` });
    }
  });

/**
 * Variables whose values are redacted in every encoding. Their size is limited, because a search for larger values
 * takes longer.
 */
export const secretsSchema = envSchema.superRefine((secrets, context) => {
  for (const [name, value] of Object.entries(secrets)) {
    const refuse = (message: string) => context.addIssue({ code: 'custom', path: [name.slice(0, 64)], message });
    const size = byteLength(value);
    if (size > LIMITS.secretBytes) refuse(`is ${size} bytes; the limit is ${LIMITS.secretBytes}`);
    else if (repeatsItself(value))
      refuse(`repeats one piece for more than ${MOST_REPEATED_CHARS} characters, and could not be looked for in time`);
  }
});

/**
 * Longest repetition that a value may contain. Output that repeats the same piece would match a longer one at every
 * byte.
 */
const MOST_REPEATED_CHARS = 64;
const LONGEST_PIECE_CHARS = 8;

function repeatsItself(value: string): boolean {
  for (let piece = 1; piece <= LONGEST_PIECE_CHARS; piece += 1) {
    let same = 0;
    for (let at = piece; at < value.length; at += 1) {
      same = value[at] === value[at - piece] ? same + 1 : 0;
      if (same > MOST_REPEATED_CHARS) return true;
    }
  }
  return false;
}
