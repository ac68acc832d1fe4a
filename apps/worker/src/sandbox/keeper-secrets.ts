import { createHmac } from 'node:crypto';
import type { SessionRef } from './sandbox.ts';

export interface KeeperSecrets {
  /** By it the worker knows the keeper from other processes of the sandbox that may dial its socket. */
  token: string;
  /** Begins each frame over attach. */
  syncWord: string;
}

/** Made from the host's key, so a restarted worker knows the same without having stored it anywhere. */
export function deriveKeeperSecrets(hostKey: Buffer, session: SessionRef, sandboxId: string): KeeperSecrets {
  const derive = (use: string) =>
    createHmac('sha256', hostKey)
      .update([use, session.namespace, session.tenant, session.session, sandboxId].join('\0'))
      .digest('hex');
  return { token: derive('token'), syncWord: derive('sync').slice(0, 16) };
}
