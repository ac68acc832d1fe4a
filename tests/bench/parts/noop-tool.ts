import { z } from 'zod';

export const noop = { input: z.object({ number: z.number() }), run: ({ number }: { number: number }) => ({ number }) };
