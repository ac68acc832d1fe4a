import { open } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { FLEET_ID_PATTERN, namespaceSchema, parseOrThrow, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';

const invitationSchema = z.strictObject({
  version: z.literal(1, 'is a version that this program does not support'),
  redisUrl: z.string().min(1),
  namespace: namespaceSchema,
  fleetId: z.string().regex(FLEET_ID_PATTERN, 'must be 12 hexadecimal digits'),
  sealKeys: z.array(z.string().min(1)).min(1),
});

/** What a worker on another machine needs to join a fleet. `hosts invite` prints it as JSON. It holds secrets. */
export type Invitation = z.output<typeof invitationSchema>;

/**
 * Reads an invitation from a file, or from stdin for `-`. Throws COMMAND_INVALID for a file that other users can read
 * or that is no invitation.
 */
export async function readInvitation(path: string): Promise<Invitation> {
  const what = path === '-' ? 'The invitation on stdin' : `The invitation ${path}`;
  const json = path === '-' ? await text(process.stdin) : await readPrivately(path);
  return parseOrThrow(invitationSchema, tryJson(json), 'COMMAND_INVALID', what);
}

async function readPrivately(path: string): Promise<string> {
  try {
    // The mode is that of the file that is read, whatever becomes of its name meanwhile.
    await using file = await open(path);
    const { mode } = await file.stat();
    if ((mode & 0o077) !== 0) throw isOpen(path);
    return await file.readFile('utf8');
  } catch (error) {
    if (error instanceof ShellfleetError) throw error;
    const { message } = error as Error;
    throw new ShellfleetError('COMMAND_INVALID', `The invitation ${path} cannot be read: ${message}.`, { path });
  }
}

function isOpen(path: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `Other users can read the invitation ${path}, which holds the keys of the fleet. Run chmod 600 ${path}; if anybody may have read it, make another invitation and delete the Redis user of this one.`,
    { path },
  );
}
