import { z } from 'zod';

const KEY = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
/** Settings that the operator cannot choose, because they follow from the sandbox of each session. */
const SESSION_SETTINGS = ['sandbox_mode', 'sandbox_workspace_write.network_access'];

/** `codex:`, settings of the Codex CLI for all sessions under the `codex` policy. */
export const codexSchema = z.strictObject(
  {
    configOverrides: z
      .record(z.string().regex(KEY), z.json(), {
        error: ({ code }) => (code === 'invalid_key' ? 'must be a dotted key' : 'must be an object'),
      })
      .refine(
        (overrides) => !SESSION_SETTINGS.some((key) => key in overrides),
        `must not name ${SESSION_SETTINGS.join(' or ')}: each session's sandbox decides about them`,
      )
      .default({})
      .describe('Settings of Codex by dotted key; what a session gives comes before them'),
  },
  'must have only this field: configOverrides',
);
