//! ORDER BY, of a query and of anything else that is ordered.

use sqlparser::ast::{Expr, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, OrderBySort};

use super::expression::Env;
use super::refusal::Refusal;
use super::scope::Columns;
use super::{Writer, name, refuse_if};

impl Writer<'_> {
    /// The ORDER BY of a whole query.
    pub(super) fn order_by_clause(
        &mut self,
        order_by: &OrderBy,
        env: Env<'_>,
        output: &Columns,
    ) -> Result<(), Refusal> {
        let OrderBy { kind, interpolate } = order_by;
        refuse_if(interpolate.is_some(), "INTERPOLATE")?;
        let OrderByKind::Expressions(items) = kind else {
            return Err(Refusal::construct("ORDER BY ALL"));
        };
        self.push(" ORDER BY ");
        self.list(items, |writer, item| writer.order_item(item, env, Some(output)))
    }

    /// One item of any ORDER BY. A bare name may also be one of the `output` columns.
    pub(super) fn order_item(
        &mut self,
        item: &OrderByExpr,
        env: Env<'_>,
        output: Option<&Columns>,
    ) -> Result<(), Refusal> {
        let OrderByExpr { expr, options, with_fill } = item;
        let OrderByOptions { sort, nulls_first } = options;
        refuse_if(with_fill.is_some(), "WITH FILL")?;
        self.output_or_expression(expr, env, output)?;
        self.push(match sort {
            None => "",
            Some(OrderBySort::Asc) => " ASC",
            Some(OrderBySort::Desc) => " DESC",
            Some(OrderBySort::Using(_)) => return Err(Refusal::construct("ORDER BY … USING")),
        });
        self.push(match nulls_first {
            None => "",
            Some(true) => " NULLS FIRST",
            Some(false) => " NULLS LAST",
        });
        Ok(())
    }

    /// An item of ORDER BY or GROUP BY: the name of an output column, or an expression.
    pub(super) fn output_or_expression(
        &mut self,
        expr: &Expr,
        env: Env<'_>,
        output: Option<&Columns>,
    ) -> Result<(), Refusal> {
        if let (Expr::Identifier(ident), Some(output)) = (expr, output) {
            let column = name::fold_column(ident)?;
            if output.contains(&column) {
                self.push_name(&column);
                return Ok(());
            }
        }
        self.expression(expr, env)
    }
}
