import { z } from 'zod';
import { type RejectionName, rejectionTable } from '../../http/rejection.ts';
import { text } from '../values.ts';

const override = z
  .strictObject({
    status: z.int().min(400).max(599).optional().meta({ description: 'HTTP status.' }),
    code: text().optional().meta({ description: 'Application error code.' }),
    detail: text().optional().meta({ description: 'Human-readable text.' }),
  })
  .optional();

const names = Object.keys(rejectionTable) as RejectionName[];
const shape = Object.fromEntries(
  names.map((name) => {
    const { status, detail } = rejectionTable[name];
    return [name, override.meta({ description: `${status}: ${detail}` })];
  }),
) as Record<RejectionName, typeof override>;

export const rejections = z.strictObject(shape).prefault({}).meta({
  description:
    'Other status, code or detail for a rejection, by its name: `{ access-token-missing: { status: 403 } }`.',
});
