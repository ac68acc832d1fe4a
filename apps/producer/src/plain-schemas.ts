import { config } from 'zod';

// A call checks few values, so code that zod generates for each schema costs more than it saves.
config({ jitless: true });
