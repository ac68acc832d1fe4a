import { z } from 'zod';

/** A stopped container that its host keeps for a post-mortem (`keepOnFailure`). */
export interface KeptSandbox {
  /** Id of the host that has the container. */
  hostId: string;
  /** Id of the container, for `docker cp`, `docker diff` and `docker export` on that host. */
  containerId: string;
  /** Time of the end; ISO 8601, by the clock of the host. */
  keptAt: string;
  /** Why the container was kept, in words. */
  reason: string;
}

/** The value in `tenantKeys().kept`. `generation` is that of its session. */
export const keptSandboxSchema = z.object({
  hostId: z.string(),
  containerId: z.string(),
  keptAt: z.string(),
  reason: z.string(),
  generation: z.string(),
});

const FIELD = /^([A-Za-z0-9._-]{1,128}) ([0-9a-f]{12})$/;

export const keptField = ({ session }: { session: string }, sandbox: string) => `${session} ${sandbox}`;

/** Parses a field of `tenantKeys().kept`. Returns undefined for other text. */
export function parseKeptField(field: string): { session: string; sandbox: string } | undefined {
  const [, session, sandbox] = FIELD.exec(field) ?? [];
  return session === undefined || sandbox === undefined ? undefined : { session, sandbox };
}
