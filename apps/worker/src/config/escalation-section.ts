import { NETWORK_ACCESSES, SANDBOX_MODES } from '@shellfleet/protocol';
import { z } from 'zod';

/** `escalation:`, the wider sandbox of commands that leave that of their session. */
export const escalationSectionSchema = z
  .strictObject(
    {
      mode: z
        .enum(SANDBOX_MODES, `must be one of ${SANDBOX_MODES.join(', ')}`)
        .optional()
        .describe('Its mode; without it that of the session'),
      network: z
        .enum(NETWORK_ACCESSES, `must be one of ${NETWORK_ACCESSES.join(', ')}`)
        .optional()
        .describe('Its network; without it that of the session'),
    },
    'must have only these fields: mode, network',
  )
  .refine(({ mode, network }) => mode !== undefined || network !== undefined, 'must name a mode, a network or both');
