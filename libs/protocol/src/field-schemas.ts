import { z } from 'zod';
import { LIMITS } from './limits.ts';
import { byteLength, hasLoneSurrogate } from './text.ts';

/** Whole milliseconds, by default 1 to 86,400,000 (a day). Longer durations overflow the timers of most systems. */
export function durationSchema(minimum = 1, maximum: number = LIMITS.timeoutMs) {
  return z
    .number('must be a number of milliseconds')
    .int('must be a whole number of milliseconds')
    .min(minimum, `must be ${minimum} to ${maximum} ms`)
    .max(maximum, `must be ${minimum} to ${maximum} ms`)
    .overwrite(withoutSign);
}

/** Limit in the text of an option that `durationSchema()` checks. */
export const UP_TO_A_DAY = '1 to 86,400,000 ms (a day)';

/** Turns -0 into 0, because JSON has no -0 and the stored value would differ. */
export const withoutSign = (number: number): number => number + 0;

/** Text for a shell: valid Unicode without NUL, at most `limitBytes` bytes in UTF-8. */
export function shellTextSchema(limitBytes: number) {
  return z.string('must be a string').superRefine((text, context) => {
    const refuse = (message: string) => context.addIssue({ code: 'custom', message });
    if (text.includes('\0')) refuse(`holds a NUL byte at offset ${text.indexOf('\0')}`);
    if (hasLoneSurrogate(text)) refuse('is not valid Unicode (lone surrogate)');
    const size = byteLength(text);
    if (size > limitBytes) refuse(`is ${size} bytes; the limit is ${limitBytes}`);
  });
}

/** A shell script that is not blank, at most 1 MiB. */
export const scriptSchema = shellTextSchema(LIMITS.scriptBytes).refine(
  (script) => script.trim() !== '',
  'must not be empty',
);

/** An absolute path inside the sandbox, at most 4,096 bytes. The sandbox resolves it. It need not exist. */
export const sandboxPathSchema = shellTextSchema(LIMITS.pathBytes).refine(
  (path) => path.startsWith('/'),
  'must be an absolute path',
);

/** Encoding of a Result's texts. Invalid UTF-8 becomes U+FFFD in `utf8`. */
export const encodingSchema = z.enum(['utf8', 'base64'], "must be 'utf8' or 'base64'");

export const escalationSchema = z
  .strictObject(
    {
      justification: z
        .string('must be a string')
        .min(1, 'must not be empty')
        .max(1_024, 'must be at most 1024 characters')
        .meta({
          description:
            "Why the command asks to leave the sandbox, in the submitter's words. The approver sees it as " +
            'untrusted text.',
        }),
    },
    'must be { justification }',
  )
  .meta({ id: 'Escalation', description: 'A request to leave the sandbox.' });
export const narrowedNetworkSchema = z.enum(['restricted', 'limited'], "must be 'restricted' or 'limited'");
