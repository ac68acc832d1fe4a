import { createHmac } from 'node:crypto';
import type { SessionRef } from './sandbox.ts';

export interface KeeperSecrets {
  /** Authenticates the keeper: other processes of the sandbox can connect to its socket too. */
  token: string;
  /** Begins each frame over attach. */
  syncWord: string;
}

/** Derives both secrets from the host's key, so a restarted worker has the same values without storing them. */
export function deriveKeeperSecrets(hostKey: Buffer, session: SessionRef, sandboxId: string): KeeperSecrets {
  const derive = (use: string) =>
    createHmac('sha256', hostKey)
      .update([use, session.namespace, session.tenant, session.session, sandboxId].join('\0'))
      .digest('hex');
  return { token: derive('token'), syncWord: derive('sync').slice(0, 16) };
}
