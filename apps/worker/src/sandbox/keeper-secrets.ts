import { createHmac } from 'node:crypto';

export interface KeeperSecrets {
  /** Authenticates the keeper: other processes of the sandbox can connect to its socket too. */
  token: string;
  /** Begins each frame over attach. */
  syncWord: string;
}

/**
 * Derives both secrets from the host's key and the sandbox, so a restarted worker has the same values without storing
 * them. A sandbox may get its session later, so no secret depends on that.
 */
export function deriveKeeperSecrets(hostKey: Buffer, namespace: string, sandboxId: string): KeeperSecrets {
  const derive = (use: string) =>
    createHmac('sha256', hostKey).update([use, namespace, sandboxId].join('\0')).digest('hex');
  return { token: derive('token'), syncWord: derive('sync').slice(0, 16) };
}
