// The page's part of this family: previews of workflows are drawn as graphs.

import './graph.js';
import { field, isObject, text } from '../drawing.js';
import { draws } from '../preview-kinds.js';
import { t } from '../texts.js';

draws({
  kind: 'workflow_preview',
  thing: 'workflow',
  change: t('Change to the workflow'),
  addition: t('New workflow'),
  element: 'sb-graph',
  fits: (preview) => text(preview, 'what') === 'workflow' || isObject(field(preview, 'workflow')),
  after: (preview) => field(preview, 'workflow') ?? {},
  draw: (drawing, after, before) => { drawing.graph = { after, before }; },
});
