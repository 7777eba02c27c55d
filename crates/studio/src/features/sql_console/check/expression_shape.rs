//! The shapes that expressions are written in: infix, postfix, patterns, lists, cases.

use sqlparser::ast::{AccessExpr, Array, BinaryOperator, CaseWhen, Expr, Query, Subscript};

use super::expression::Env;
use super::refusal::Refusal;
use super::{Writer, operator, refuse_if};

impl Writer<'_> {
    pub(super) fn infix(
        &mut self,
        left: &Expr,
        operator: &str,
        right: &Expr,
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        self.push("(");
        self.expression(left, env)?;
        self.push(operator);
        self.expression(right, env)?;
        self.push(")");
        Ok(())
    }

    pub(super) fn postfix(
        &mut self,
        expr: &Expr,
        words: &str,
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        self.push("(");
        self.expression(expr, env)?;
        self.push(words);
        Ok(())
    }

    pub(super) fn pattern(
        &mut self,
        expr: &Expr,
        word: &str,
        pattern: &Expr,
        escape: Option<&Expr>,
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        self.push("(");
        self.expression(expr, env)?;
        self.push(word);
        self.expression(pattern, env)?;
        if let Some(escape) = escape {
            self.push(" ESCAPE ");
            self.expression(escape, env)?;
        }
        self.push(")");
        Ok(())
    }

    pub(super) fn quantified(
        &mut self,
        left: &Expr,
        compare: &BinaryOperator,
        quantifier: &str,
        right: &Expr,
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        let compare = operator::spelled(compare)?;
        refuse_if(matches!(compare, " AND " | " OR "), "ANY or ALL after AND or OR")?;
        self.push("(");
        self.expression(left, env)?;
        self.push(compare);
        self.push(quantifier);
        self.push(" ");
        let mut right = right;
        while let Expr::Nested(inner) = right {
            right = inner;
        }
        if let Expr::Subquery(query) = right {
            self.bracketed_query(query, env)?;
        } else {
            self.push("(");
            self.expression(right, env)?;
            self.push(")");
        }
        self.push(")");
        Ok(())
    }

    pub(super) fn bracketed_query(&mut self, query: &Query, env: Env<'_>) -> Result<(), Refusal> {
        self.push("(");
        self.query(query, env.scope, env.ctes)?;
        self.push(")");
        Ok(())
    }

    /// An array. Those inside it may leave the word ARRAY out.
    pub(super) fn array(&mut self, array: &Array, env: Env<'_>) -> Result<(), Refusal> {
        let Array { elem, named: _ } = array;
        self.push("ARRAY[");
        self.list(elem, |writer, item| {
            if let Expr::Array(inner) = item {
                writer.array(inner, env)
            } else {
                writer.expression(item, env)
            }
        })?;
        self.push("]");
        Ok(())
    }

    pub(super) fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        self.push("CASE");
        if let Some(operand) = operand {
            self.push(" ");
            self.expression(operand, env)?;
        }
        for CaseWhen { condition, result } in conditions {
            self.push(" WHEN ");
            self.expression(condition, env)?;
            self.push(" THEN ");
            self.expression(result, env)?;
        }
        if let Some(otherwise) = otherwise {
            self.push(" ELSE ");
            self.expression(otherwise, env)?;
        }
        self.push(" END");
        Ok(())
    }

    pub(super) fn subscripts(
        &mut self,
        root: &Expr,
        chain: &[AccessExpr],
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        self.push("(");
        self.expression(root, env)?;
        self.push(")");
        for access in chain {
            let AccessExpr::Subscript(Subscript::Index { index }) = access else {
                return Err(Refusal::construct("A field or a slice of a value"));
            };
            self.push("[");
            self.expression(index, env)?;
            self.push("]");
        }
        Ok(())
    }
}
