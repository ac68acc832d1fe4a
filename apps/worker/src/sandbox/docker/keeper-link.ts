import type { Duplex } from 'node:stream';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { deriveKeeperSecrets } from '../keeper-secrets.ts';
import type { KeeperLink } from '../sandbox.ts';
import { AttachStream } from './attach-stream.ts';
import type { SandboxLabels } from './labels.ts';

/** Returns how to reach the keeper of a container. `path` is its socket for the transport `socket`. */
export function toKeeperLink(
  container: Docker.Container,
  path: string,
  hostKey: Buffer,
  { namespace, sandboxId, transport }: SandboxLabels,
): KeeperLink {
  const { token, syncWord } = deriveKeeperSecrets(hostKey, namespace, sandboxId);
  if (transport === 'socket') return { type: 'socket', path, token };
  const streams = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
  const open = () => container.attach(streams).then((socket) => new AttachStream(socket as Duplex));
  return { type: 'attach', token, syncWord, open };
}
