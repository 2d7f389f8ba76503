"""Operations on tables of any format."""
